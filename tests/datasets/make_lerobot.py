"""Makes lerobot_av1/, with LeRobot 0.4.4 in an environment of its own: python make_lerobot.py DIR."""

import sys

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

CAMERA = {"dtype": "video", "shape": (64, 64, 3), "names": ["height", "width", "channels"]}
FEATURES = {
    "observation.images.cam": CAMERA,
    "observation.state": {"dtype": "float32", "shape": (3,), "names": None},
    "action": {"dtype": "float32", "shape": (2,), "names": None},
}

if __name__ == "__main__":
    made = LeRobotDataset.create("own/tiny", 10, FEATURES, root=sys.argv[1], use_videos=True)
    for e, n in enumerate((6, 4, 5)):
        for t in range(n):
            picture = np.zeros((64, 64, 3), np.uint8)
            picture[:, :, 0], picture[:, :, 1] = 40 * e + 60, 20 * t + 40
            picture[8 * t : 8 * t + 8, :, 2] = 250
            frame = {
                "observation.images.cam": picture,
                "observation.state": np.float32([e, t, 0]),
                "action": np.float32([t, -e]),
                "task": ["open it", "close it"][e % 2],
            }
            made.add_frame(frame)
        made.save_episode()
    made.finalize()
