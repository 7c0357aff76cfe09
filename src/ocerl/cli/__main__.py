"""`python -m ocerl.cli`."""

import sys

from ocerl.cli import main

sys.exit(main())
