"""The page: what people see of a gateway, of its programs and of their own results, in a browser.

It asks the log, the downlink and the supervisor's word beside the gateway's work, and only while somebody looks. Its
API is versioned (`/page/v1/…`); nothing of it is on the way of an upload.
"""
