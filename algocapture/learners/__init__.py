"""What can be trained and adapted."""

from algocapture.learners.base import Learner, LearnerConfig, Prediction, Step
from algocapture.learners.decoding import Decoded, decode, decoded_error
from algocapture.learners.kernel import KernelPredictor
from algocapture.learners.kernel_learner import KernelLearner, KernelRegression
from algocapture.learners.sgd import SGD, SGDLearner
from algocapture.learners.stacked import Stacked, StackedLearner

__all__ = [
    "SGD",
    "Decoded",
    "KernelLearner",
    "KernelPredictor",
    "KernelRegression",
    "Learner",
    "LearnerConfig",
    "Prediction",
    "SGDLearner",
    "Stacked",
    "StackedLearner",
    "Step",
    "decode",
    "decoded_error",
]
