"""The race: every policy on a catalogue of problems, and how far each is from the best."""
