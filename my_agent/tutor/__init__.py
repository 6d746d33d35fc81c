"""Graph `tutor`: talk with a learner of English and correct the learner's mistakes."""
