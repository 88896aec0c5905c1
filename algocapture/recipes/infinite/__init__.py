"""Capture at infinite width: the capture test run on kernel predictors. Not in the paper."""
