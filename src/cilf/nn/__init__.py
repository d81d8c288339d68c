"""Networks and the mechanics learners share: each part once, none of them knowing a method.

Backbones, losses, prototypes, memory and the one training loop. They get arrays and tensors.
"""
