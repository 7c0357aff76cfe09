"""Algorithm 2 with neural networks: REINFORCE and PPO in the augmented MDP (Section 5 and Appendix C)."""
