"""`.venv/bin/python scripts/docs` makes what is generated in docs/."""

import sys

from command import main

sys.exit(main())
