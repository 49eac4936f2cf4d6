"""Cost and speed of the protocols, measured from outside. See README.md beside this file."""
