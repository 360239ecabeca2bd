"""Users and arms that come and go, and what is kept of every user: what `Agent`, `Fleet` and `Flock` are made of."""
