"""What can be trained and adapted."""

from algocapture.learners.base import Learner, LearnerConfig, Prediction, Step

__all__ = ["Learner", "LearnerConfig", "Prediction", "Step"]
