"""What happens to a client's batch before it is appended. Pure, and may run in a thread.

`validation.py` checks what the header of a batch proves, `inspection.py` reads its records if the topic
requires it, `batches.py` has the headers and transaction markers. `storage/log.py` and `broker/records`
import it. Begin with `inspection.py`.
"""
