"""The sequence of answers: what somebody knows who has all of them."""
