"""What the page of any analysis keeps that has numbers in large."""

import re
from html import unescape

from haptera.analysis import Analysis


def check_large_numbers(analysis: Analysis) -> dict[str, str]:
    """See that each number in large is on the page, and each title leads to a place of it; return word -> number."""
    page, told = unescape(analysis.page()), analysis.findings()
    shown = {finding.word: finding.number for finding in told if finding.number}
    assert shown
    for finding in told:
        assert not finding.number or f'<dd class="large">{finding.number}</dd>' in page
        if finding.number or finding.figure:
            found = re.search(rf'<a href="#([^"]+)">{re.escape(finding.figure)}</a>', page)
            assert found, finding.figure
            assert f'id="{found[1]}"' in page
    return shown
