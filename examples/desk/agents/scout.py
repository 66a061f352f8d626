"""jay: the first look of three fails, the second hangs and is ended by its wall clock, the third finds something."""

import sys
import time
from pathlib import Path

count = Path("looks")
looks = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(looks))
if looks % 3 == 1:
    sys.exit("the wire is down")
if looks % 3 == 2:
    time.sleep(60)
print("found something")
