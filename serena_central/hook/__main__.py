"""`python -I -m serena_central.hook`: how a user's own configuration starts it."""

from serena_central.hook.main import main

main()
