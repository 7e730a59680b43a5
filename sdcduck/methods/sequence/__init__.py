"""The sequence of answers: what somebody knows after all of them together."""
