"""Work at import: at once, or put off until it is needed."""

from spinformer._base import deferred


def test_work_is_done_at_once_or_when_it_is_needed(monkeypatch):
    monkeypatch.setattr(deferred, "_waiting", None)
    done = []
    deferred.at_import(lambda: done.append("at once"))
    assert done == ["at once"]
    deferred.defer()
    deferred.at_import(lambda: done.append("put off"))
    assert done == ["at once"]
    deferred.catch_up()
    deferred.catch_up()  # nothing is done twice
    assert done == ["at once", "put off"]
    deferred.at_import(lambda: done.append("at once again"))
    assert done[-1] == "at once again"
