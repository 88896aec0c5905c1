"""What can be trained and adapted."""

from algocapture.learners.base import Learner, LearnerConfig, Prediction, Step
from algocapture.learners.decoding import Decoded, decode, decoded_error
from algocapture.learners.sgd import SGD, SGDLearner

__all__ = [
    "SGD",
    "Decoded",
    "Learner",
    "LearnerConfig",
    "Prediction",
    "SGDLearner",
    "Step",
    "decode",
    "decoded_error",
]
