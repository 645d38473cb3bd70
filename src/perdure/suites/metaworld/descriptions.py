"""What each of the fifty tasks asks for, in a line."""

from __future__ import annotations

ABOUT = dict(
    line.strip().split(": ", 1)
    for line in """
    assembly: Pick up a nut by its handle and put it onto a peg.
    basketball: Drop a ball into the basket.
    bin-picking: Take a block out of one bin and put it into the other.
    box-close: Pick up a lid and close the box with it.
    button-press: Press a button in a wall.
    button-press-topdown: Press a button from above.
    button-press-topdown-wall: Press a button from above, behind a wall.
    button-press-wall: Press a button in a wall, past another wall.
    coffee-button: Press the button of a coffee machine.
    coffee-pull: Pull a mug away from a coffee machine.
    coffee-push: Push a mug under a coffee machine.
    dial-turn: Turn a dial by half a circle.
    disassemble: Take a nut off its peg.
    door-close: Close a door with a revolving joint.
    door-lock: Lock a door by turning its lock.
    door-open: Open a door with a revolving joint.
    door-unlock: Unlock a door by turning its lock back.
    drawer-close: Push a drawer shut.
    drawer-open: Pull a drawer open.
    faucet-close: Turn a faucet shut.
    faucet-open: Turn a faucet open.
    hammer: Drive a nail into the wall with a hammer.
    hand-insert: Put a block into a hole with the gripper.
    handle-press: Press a handle down.
    handle-press-side: Press a handle down from the side.
    handle-pull: Pull a handle up.
    handle-pull-side: Pull a handle up from the side.
    lever-pull: Pull a lever up by a quarter of a circle.
    peg-insert-side: Put a peg into a hole from the side.
    peg-unplug-side: Pull a peg out of a hole to the side.
    pick-out-of-hole: Take a puck out of a hole and bring it to the goal.
    pick-place: Pick up a puck and bring it to the goal.
    pick-place-wall: Pick up a puck, over a wall, and bring it to the goal.
    plate-slide: Slide a plate into a cabinet.
    plate-slide-back: Slide a plate out of a cabinet.
    plate-slide-back-side: Slide a plate out of a cabinet to the side.
    plate-slide-side: Slide a plate into a cabinet from the side.
    push: Push a puck to the goal.
    push-back: Pull a puck back to the goal.
    push-wall: Push a puck around a wall to the goal.
    reach: Move the gripper to the goal.
    reach-wall: Move the gripper past a wall to the goal.
    shelf-place: Pick up a block and put it onto a shelf.
    soccer: Shoot a ball into the goal.
    stick-pull: Take a stick and pull a box with it.
    stick-push: Take a stick and push a box with it.
    sweep: Sweep a block off the table.
    sweep-into: Sweep a block into a hole.
    window-close: Slide a window shut.
    window-open: Slide a window open.
    """.strip().splitlines()
)
