"""algocapture: has a neural network captured an algorithm, or only interpolated its sizes?

Importing the package is instant: import what you need from its parts
(`algocapture.tasks`, `.models`, `.learners`, `.protocol`, `.stats`, ...).
"""

__version__ = "0.1.0"
