"""A Hugging Face Space: the page of `spinformer app`.

The model is the small one of the package, or the one that the Space's variable SPINFORMER_MODEL names.
"""

from spinformer.app import Classifier, build, serve
from spinformer.models.shipped import default_model

FRAMED_BY = "'self' https://huggingface.co https://*.hf.space"

demo = build(Classifier.load(default_model()))

if __name__ == "__main__":
    serve(demo, host="0.0.0.0", port=7860, framed_by=FRAMED_BY)
