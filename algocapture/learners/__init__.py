"""What can be trained and adapted."""

from algocapture.learners.base import Learner, LearnerConfig, Prediction, Step
from algocapture.learners.sgd import SGD, SGDLearner

__all__ = ["SGD", "Learner", "LearnerConfig", "Prediction", "SGDLearner", "Step"]
