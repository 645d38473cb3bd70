"""The kinds of scene: where the table, the robot and the cameras are."""

from __future__ import annotations

from dataclasses import dataclass, field

from perdure.errors import UnknownName

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

HIGH: Quaternion = (0.6380177736282349, 0.3048497438430786, 0.30484986305236816, 0.6380177736282349)
LOW: Quaternion = (0.6182166934013367, 0.3432307541370392, 0.3432314395904541, 0.6182177066802979)
FRONT: Quaternion = (0.56, 0.43, 0.43, 0.56)
GALLERY = (
    (2.844547668904445, 2.1279684793440667, 3.128616846013882),
    (0.42261379957199097, 0.23374411463737488, 0.41646939516067505, 0.7702690958976746),
)
PAPER: Quaternion = (0.513, 0.353, 0.443, 0.645)


@dataclass(frozen=True)
class Table:
    """A table that is built to measure rather than read from the scene's file."""

    size: Vector
    friction: Vector


@dataclass(frozen=True)
class Workspace:
    """One kind of scene. Lengths are in metres."""

    problem: str
    """What a task file calls it."""
    name: str
    """The surface that objects stand on, as regions name it."""
    category: str
    """The surface's category among a file's fixtures."""
    body: str
    """The body that the surface's regions belong to."""
    scene: str
    """The arena's file."""
    floor: str
    wall: str
    """Textures."""
    offset: Vector
    """Of what is placed: the middle of the surface."""
    fixture_drop: float
    """How far above the surface fixtures are placed (below, if negative)."""
    zone_offset: Vector
    """Of the middle of the surface in its body."""
    mounted: bool
    """Whether the robot stands on a pedestal."""
    base: Vector
    """Of the robot."""
    cameras: tuple[tuple[str, Vector, Quaternion], ...]
    """Set or added to those of the arena's file."""
    keep_inside: bool
    """Whether objects must lie in their region as a whole rather than with their middle."""
    table: Table | None = field(default=None)


def _cameras(
    agent: Vector, turned: Quaternion, front: Vector, paper: Vector | None = None
) -> tuple[tuple[str, Vector, Quaternion], ...]:
    more = () if paper is None else (("paperview", paper, PAPER),)
    return (
        ("agentview", agent, turned),
        ("frontview", front, FRONT),
        ("galleryview", *GALLERY),
        *more,
    )


_ALL = (
    Workspace(
        problem="libero_tabletop_manipulation",
        name="main_table",
        category="table",
        body="table",
        scene="scenes/libero_tabletop_base_style.xml",
        floor="light-gray-floor-tile.png",
        wall="light-gray-plaster.png",
        offset=(0, 0, 0.90),
        fixture_drop=0.01 - 0.05,
        zone_offset=(0, 0, 0.02),
        mounted=True,
        base=(-0.16 - 1.0 / 2, 0, 0.912),
        cameras=_cameras((0.6586131746834771, 0.0, 1.6103500240372423), HIGH, (1.0, 0.0, 1.48)),
        keep_inside=True,
        table=Table((1.0, 1.2, 0.05), (0.6, 0.005, 0.0001)),
    ),
    Workspace(
        problem="libero_kitchen_tabletop_manipulation",
        name="kitchen_table",
        category="kitchen_table",
        body="table",
        scene="scenes/libero_kitchen_tabletop_base_style.xml",
        floor="gray_ceramic_tile.png",
        wall="yellow_linen_wall_texture.png",
        offset=(0.0, 0, 0.90),
        fixture_drop=0.01 - 0.05,
        zone_offset=(0, 0, 0),
        mounted=True,
        base=(-0.16 - 1.0 / 2, 0, 0.912),
        cameras=_cameras(
            (0.6586131746834771, 0.0, 1.6103500240372423), HIGH, (1.0, 0.0, 1.48), (2.1, 0.535, 2.075)
        ),
        keep_inside=False,
        table=Table((1.0, 1.2, 0.05), (1, 0.005, 0.0001)),
    ),
    Workspace(
        problem="libero_study_tabletop_manipulation",
        name="study_table",
        category="study_table",
        body="study_table",
        scene="scenes/libero_study_base_style.xml",
        floor="light-gray-floor-tile.png",
        wall="light-gray-plaster.png",
        offset=(-0.2, 0, 0.867),
        fixture_drop=0.01 - 0.05,
        zone_offset=(-0.2, 0, 0.867),
        mounted=True,
        base=(-0.25 - 1.0 / 2, 0, 0.912),
        cameras=_cameras(
            (0.4586131746834771, 0.0, 1.6103500240372423), HIGH, (1.0, 0.0, 1.48), (2.1, 0.535, 2.075)
        ),
        keep_inside=False,
    ),
    Workspace(
        problem="libero_living_room_tabletop_manipulation",
        name="living_room_table",
        category="living_room_table",
        body="living_room_table",
        scene="scenes/libero_living_room_tabletop_base_style.xml",
        floor="seamless_wood_planks_floor.png",
        wall="light-gray-plaster.png",
        offset=(0, 0, 0.41),
        fixture_drop=0.01 - 0.024,
        zone_offset=(0, 0, 0.41),
        mounted=False,
        base=(-0.16 - 0.70 / 2, 0, 0.42),
        cameras=_cameras((0.6065773716836134, 0.0, 0.96), LOW, (1.5, 0.0, 0.9), (2.1, 0.735, 1.875)),
        keep_inside=False,
    ),
    Workspace(
        problem="libero_floor_manipulation",
        name="floor",
        category="floor",
        body="floor",
        scene="scenes/libero_floor_base_style.xml",
        floor="light-gray-floor-tile.png",
        wall="light-gray-plaster.png",
        offset=(0, 0, -0.035),
        fixture_drop=-0.025,
        zone_offset=(0, 0, 0.02),
        mounted=False,
        base=(-0.6, 0, 0),
        cameras=_cameras((0.8965773716836134, 5.216182733499864e-07, 0.65), LOW, (1.0, 0.0, 0.65)),
        keep_inside=True,
    ),
)  # fmt: skip

WORKSPACES = {w.problem: w for w in _ALL}


def workspace(problem: str) -> Workspace:
    """The kind of scene that a task file names."""
    if problem not in WORKSPACES:
        raise UnknownName("LIBERO problem", problem, WORKSPACES)
    return WORKSPACES[problem]
