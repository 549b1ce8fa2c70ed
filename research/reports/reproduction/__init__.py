"""The reproduction report: every claim, equation, table and figure of both papers, judged from results.

`page` makes docs/reproduction.md from a folder of results. Entries are in `neurogame_model`, `neurogame_estimation`,
`neurogame_experiments` and `attractor`; the functions that judge them are in `judges`.
"""
