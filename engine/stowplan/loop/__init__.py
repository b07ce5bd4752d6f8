"""Events in, effects out: the order of the queue, and simulation as the loop over a virtual clock."""
