"""Makes rlds/, with TensorFlow Datasets 4.9.10 in an environment of its own: python make_rlds.py DIR."""

import sys

import numpy as np
import tensorflow_datasets as tfds

F = tfds.features
EPISODES = [(5, "open the drawer"), (3, "close the drawer"), (4, "open the drawer")]


class TinyArm(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        seen = F.FeaturesDict({
            "image": F.Image(shape=(8, 8, 3), dtype=np.uint8, encoding_format="png"),
            "wrist_image": F.Image(shape=(8, 8, 3), dtype=np.uint8, encoding_format="jpeg"),
            "state": F.Tensor(shape=(8,), dtype=np.float32),
            "joint_state": F.Tensor(shape=(7,), dtype=np.float64),
            "grid": F.Tensor(shape=(2, 3), dtype=np.uint8),
        })  # fmt: skip
        step = {
            "observation": seen, "action": F.Tensor(shape=(7,), dtype=np.float32),
            "discount": F.Scalar(dtype=np.float32), "reward": F.Scalar(dtype=np.float32),
            "is_first": F.Scalar(dtype=np.bool_), "is_last": F.Scalar(dtype=np.bool_),
            "is_terminal": F.Scalar(dtype=np.bool_), "language_instruction": F.Text(),
        }  # fmt: skip
        about = F.FeaturesDict({"file_path": F.Text(), "episode_id": F.Scalar(dtype=np.int32)})
        all_ = F.FeaturesDict({"steps": F.Dataset(step), "episode_metadata": about})
        return tfds.core.DatasetInfo(builder=self, features=all_)

    def _split_generators(self, dl):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for e, (n, words) in enumerate(EPISODES):
            steps = []
            for t in range(n):
                k = e * 100 + t
                seen = {
                    "image": (np.arange(192).reshape(8, 8, 3) + k).astype(np.uint8),
                    "wrist_image": np.full((8, 8, 3), (k * 3) % 256, np.uint8),
                    "state": np.float32(np.arange(8) + k / 10),
                    "joint_state": np.arange(7) + k / 7,
                    "grid": ((np.arange(6).reshape(2, 3) + k) % 256).astype(np.uint8),
                }
                last = t == n - 1
                steps.append({
                    "observation": seen, "action": np.float32(np.arange(7) - k / 10), "discount": 1.0,
                    "reward": float(last), "is_first": t == 0, "is_last": last,
                    "is_terminal": last and e != 1, "language_instruction": words,
                })  # fmt: skip
            about = {"file_path": f"demo_{e}.hdf5", "episode_id": e}
            yield f"e{e}", {"steps": steps, "episode_metadata": about}


if __name__ == "__main__":
    TinyArm(data_dir=sys.argv[1]).download_and_prepare()
