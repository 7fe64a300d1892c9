"""`python -m haptera` is `haptera`."""

from haptera.run.stopping import ending_quietly


def run() -> None:
    """Run the command line; listens for signals before it imports anything that takes long."""
    with ending_quietly():
        from haptera.cli import main

        main()


if __name__ == "__main__":
    run()
