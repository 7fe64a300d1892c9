"""Kernels: arithmetic on bytes, compiled by numba for the machine it runs on.

Each module imports numba, so it is imported where it is used, and only where numba is installed
(`haptera.extras.compiles`). Kernels are plain loops over one image after the other, hold no lock, and read rows
in which the next pixel is `step` bytes on, so that they see images with channels first as more images of one channel.
They are compiled at the first call, in about a second each, and kept on disk.
"""
