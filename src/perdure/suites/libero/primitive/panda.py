"""The Panda arm, its pedestal and its gripper, of boxes and capsules.

Joints, masses, inertias, motors, the hand's frame and the finger pads are those of robosuite 1.4's
model (MIT licence), so that the controller moves the same arm; its shells are our own. They touch
things, but not each other.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from perdure.suites.libero.mjcf import Element, text
from perdure.suites.libero.primitive.shapes import Colour, Shape

WHITE: Colour = (0.92, 0.93, 0.94)
DARK: Colour = (0.25, 0.25, 0.26)
METAL: Colour = (0.5, 0.5, 0.5)
LIMBS = {"contype": "0", "conaffinity": "1"}
H = 0.707107
LINKS = (
    # place, turn; mass, its middle, inertia; joint's range; rods: start, end, radius.
    ((0, 0, 0.333), (1, 0, 0, 0), 3.0, (0, 0, -0.07), 0.3, (-2.8973, 2.8973),
     (((0, 0, -0.13), (0, 0, -0.005), 0.060), ((0, -0.070, 0), (0, 0, 0), 0.056))),
    ((0, 0, 0), (H, -H, 0, 0), 3.0, (0, -0.1, 0), 0.3, (-1.7628, 1.7628),
     (((0, 0, 0), (0, 0, 0.070), 0.056), ((0, -0.02, 0), (0, -0.135, 0), 0.056))),
    ((0, -0.316, 0), (H, H, 0, 0), 2.0, (0.04, 0, -0.05), 0.2, (-2.8973, 2.8973),
     (((0, 0, -0.065), (0, 0, -0.005), 0.054), ((0, 0, 0), (0.0825, 0.02, 0), 0.048),
      ((0.0825, 0, 0), (0.0825, 0.058, 0), 0.052))),
    ((0.0825, 0, 0), (H, H, 0, 0), 2.0, (-0.04, 0.05, 0), 0.2, (-3.0718, -0.0698),
     (((0, 0, 0), (0, 0, 0.058), 0.052), ((0, 0, 0), (-0.0825, 0.05, 0), 0.046),
      ((-0.0825, 0.03, 0), (-0.0825, 0.070, 0), 0.053))),
    ((-0.0825, 0.384, 0), (H, -H, 0, 0), 2.0, (0, 0, -0.15), 0.2, (-2.8973, 2.8973),
     (((0, 0, -0.205), (0, 0, -0.165), 0.054), ((0, 0.030, -0.160), (0, 0.075, -0.010), 0.040),
      ((0, 0, 0), (0, 0.070, 0), 0.050))),
    ((0, 0, 0), (H, H, 0, 0), 1.5, (0.06, 0, 0), 0.1, (-0.0175, 3.7525),
     (((0, 0, -0.005), (0, 0, 0.010), 0.046), ((0.01, 0, 0), (0.080, 0.010, 0), 0.044),
      ((0.088, 0, 0), (0.088, 0.034, 0), 0.044))),
    ((0.088, 0, 0), (H, H, 0, 0), 0.5, (0, 0, 0.08), 0.05, (-2.8973, 2.8973),
     (((0, 0, 0.070), (0, 0, 0.080), 0.030),)),
)  # fmt: skip
TORQUES = (80.0, 80.0, 80.0, 80.0, 80.0, 12.0, 12.0)


def _model() -> tuple[Element, Element]:
    root = ET.Element("mujoco")
    for tag in ("asset", "actuator"):
        ET.SubElement(root, tag)
    return root, ET.SubElement(root, "worldbody")


def _inertial(body: Element, mass: float, place: str, inertia: str) -> None:
    ET.SubElement(body, "inertial", mass=repr(mass), pos=place, diaginertia=inertia)


def arm() -> Element:
    """Seven joints on a foot."""
    root, world = _model()
    base = ET.SubElement(world, "body", name="base", pos="0 0 0")
    ET.SubElement(
        base, "camera", mode="fixed", name="robotview", pos="1.0 0 0.4",
        quat="0.653 0.271 0.271 0.653",
    )  # fmt: skip
    _inertial(base, 0.0, "0 0 0", "0 0 0")
    body = ET.SubElement(base, "body", name="link0", pos="0 0 0")
    _inertial(body, 4.0, "0 0 0.05", "0.4 0.4 0.4")
    foot = Shape(root, body)
    foot.cylinder((0, 0, 0.075), 0.068, 0.065, WHITE, solid=True)
    foot.box((-0.09, 0, 0.045), (0.060, 0.070, 0.045), WHITE)
    foot.box((-0.04, 0, 0.008), (0.112, 0.092, 0.008), DARK, solid=False)
    foot.weigh(1.0, **LIMBS)
    for k, (place, turn, mass, middle, inertia, limits, rods) in enumerate(LINKS, 1):
        body = ET.SubElement(body, "body", name=f"link{k}", pos=text(place), quat=text(turn))
        _inertial(body, mass, text(middle), text((inertia,) * 3))
        ET.SubElement(
            body, "joint", name=f"joint{k}", pos="0 0 0", axis="0 0 1", limited="true",
            range=text(limits), damping="0.1",
        )  # fmt: skip
        shell = Shape(root, body)
        for start, end, radius in rods:
            shell.capsule(start, end, radius, WHITE, solid=True)
        if k == 7:
            shell.cylinder((0, 0, 0.088), 0.042, 0.018, DARK)
            shell.box((0.03, 0.03, 0.078), (0.022, 0.022, 0.010), DARK, False, (0.924, 0, 0, 0.383))
        shell.weigh(1.0, **LIMBS)
    motors = root.find("actuator")
    assert motors is not None
    for k, most in enumerate(TORQUES, 1):
        ET.SubElement(
            motors, "motor", name=f"torq_j{k}", joint=f"joint{k}", ctrllimited="true",
            ctrlrange=text((-most, most)),
        )  # fmt: skip
    hand = ET.SubElement(body, "body", name="right_hand", pos="0 0 0.1065", quat="0.924 0 0 -0.383")
    _inertial(hand, 0.5, "0 0 0", "0.05 0.05 0.05")
    ET.SubElement(
        hand, "camera", mode="fixed", name="eye_in_hand", pos="0.05 0 0",
        quat="0 0.707108 0.707108 0", fovy="75",
    )  # fmt: skip
    return root


def mount() -> Element:
    """A pedestal to stand on, 92 cm high."""
    root, world = _model()
    base = ET.SubElement(world, "body", name="base", pos="0 0 -0.922")
    shape = Shape(root, ET.SubElement(base, "body", name="pedestal", pos="0 0 0"))
    shape.cylinder((-0.02, 0, -0.29), 0.17, 0.29, DARK)
    shape.cylinder((0, 0, -0.01), 0.10, 0.012, METAL)
    shape.box((-0.325, 0, -0.38), (0.11, 0.2, 0.265), DARK)
    shape.box((-0.1225, 0, -0.758), (0.385, 0.35, 0.155), DARK)
    shape.cylinder((-0.02, 0, -0.29), 0.18, 0.31, None, solid=True)
    shape.weigh(1.0, **LIMBS)
    return root


def gripper() -> Element:
    """A hand with two fingers that slide."""
    root, world = _model()
    body = ET.SubElement(world, "body", name="right_gripper", pos="0 0 0", quat=text((H, 0, 0, -H)))
    ET.SubElement(
        body, "inertial", pos="0 0 0.17", quat=text((H, H, 0, 0)), mass="0.3",
        diaginertia="0.09 0.07 0.05",
    )  # fmt: skip
    hand = Shape(root, body)
    hand.box((0, 0, 0.030), (0.100, 0.030, 0.034), None)
    # Narrower than what collides: the hand's own camera looks along it to the fingers.
    hand.box((0, 0, 0.022), (0.098, 0.022, 0.030), WHITE, solid=False)
    hand.box((0, 0, 0.057), (0.100, 0.018, 0.009), DARK, solid=False)
    hand.weigh(1.0, **LIMBS)
    tip = ET.SubElement(body, "body", name="eef", pos="0 0 0.097", quat="1 0 0 0")
    ET.SubElement(tip, "site", name="grip_site", pos="0 0 0", size="0.01", rgba="1 0 0 0.5")
    motors = root.find("actuator")
    assert motors is not None
    for k, (side, name) in enumerate(((1, "leftfinger"), (-1, "rightfinger")), 1):
        finger = ET.SubElement(body, "body", name=name, pos="0 0 0.0524", quat=text((H, 0, 0, H)))
        ET.SubElement(finger, "inertial", pos="0 0 0.05", mass="0.1", diaginertia="0.01 0.01 0.005")
        limits = (0.0, 0.04) if side > 0 else (-0.04, 0.0)
        ET.SubElement(
            finger, "joint", name=f"finger_joint{k}", type="slide", axis="0 1 0", limited="true",
            range=text(limits), damping="100", armature="1.0", frictionloss="1.0",
        )  # fmt: skip
        shell = Shape(root, finger)
        shell.box((0, side * 0.0140, 0.0095), (0.0104, 0.0115, 0.0095), METAL)
        shell.box((0, side * 0.0105, 0.0300), (0.0095, 0.0095, 0.0130), METAL, solid=False)
        shell.box((0, side * 0.0070, 0.0450), (0.0087, 0.0069, 0.0088), METAL)
        shell.weigh(1.0, **LIMBS, condim="4", solref="0.02 1", solimp="0.9 0.95 0.001",
                    friction="1 0.005 0.0001")  # fmt: skip
        end = ET.SubElement(
            finger, "body", name=f"finger_joint{k}_tip", pos=text((0, side * 0.0085, 0.056))
        )
        ET.SubElement(
            end, "inertial", pos="0 0 0", quat="0 0 0 1", mass="0.01", diaginertia="0.01 0.01 0.01"
        )
        ET.SubElement(
            end, "geom", name=f"finger{k}_pad_collision", type="box", size="0.008 0.004 0.008",
            pos=text((0, -side * 0.005, -0.015)), quat="0 0 0 1", group="0", solref="0.01 0.5",
            friction="2 0.05 0.0001",
        )  # fmt: skip
        ET.SubElement(
            motors, "position", name=f"gripper_finger_joint{k}", joint=f"finger_joint{k}",
            ctrllimited="true", ctrlrange=text(limits), kp="1000", forcelimited="true",
            forcerange="-20 20",
        )  # fmt: skip
    return root


PARTS = {"arm": arm, "mount": mount, "gripper": gripper}
