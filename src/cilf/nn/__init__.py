"""Networks and training that several learners share.

The modules hold backbones, losses, prototypes, memory and the one training loop. They take arrays
and tensors, and know no learner.
"""
