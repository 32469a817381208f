"""A page that trains: draw what is held out, and eight networks learn in the browser."""
