"""What people see: tables, outlines, live views."""
