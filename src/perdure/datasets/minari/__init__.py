"""Minari datasets, written and read without a loss: pictures are not made JPEG.

::

    data/metadata.json          counts, spaces, format
    data/0/part-0.parquet       Parquet: an episode, a row for each observation, so one more than actions
    data/0/metadata.json                 its number, length and seed
    data/main_data.hdf5         HDF5, Minari's default: a group for each episode

Spaces are Box, Discrete, MultiDiscrete, MultiBinary and Text (in HDF5), in Dict and Tuple as deep as one likes;
actions are of one array. Parts of an observation have their places in it as names: ``arm/pose``, ``camera/0``.
Infos of each step, seeds and options are kept. Datasets whose pictures are JPEG are read as well; what that lost is lost.
"""

from perdure.datasets.minari.reader import MinariReader, read_minari
from perdure.datasets.minari.writer import write_minari

__all__ = ["MinariReader", "read_minari", "write_minari"]
