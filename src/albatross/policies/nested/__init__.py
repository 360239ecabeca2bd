"""Policies for arms with nested feature maps, and the policies in stages that they build on."""
