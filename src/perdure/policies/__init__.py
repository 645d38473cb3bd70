"""Policies elsewhere: what they are shown and do by a protocol, and the languages of their servers."""
