"""Where the NeuroGame paper contradicts itself or its code, in the order of its sections."""

from research.reports.reproduction.contradiction import Contradiction, Option

CONTRADICTIONS = (
    Contradiction(
        "contradiction-accuracy", "SNLI accuracy",
        "abstract: “a test accuracy of 86.4% (with a peak validation accuracy of 86.6%)”",
        "section 7.4: “a test accuracy of 86.60%”; Table 5: 86.60",
        "Table 5 is quoted as printed. Our own runs score the test set once, with the weights after the last epoch.",
        "The published run (BERT-base, all of SNLI, 5 epochs): 86.59 on dev, 86.35 on test.",
        otherwise="no option: which number is a test accuracy, the paper must say",
    ),
    Contradiction(
        "contradiction-guarantees", "what is proved",
        "abstract: “theoretical convergence guarantees”, and a characterised trade-off of fairness and sensitivity",
        "no section does: Theorem 1 is an approximation, section 4.3 asserts convergence, and no λ is varied",
        "Limits are measured ([limits](#ngt-consistent)), and what a fixed λ does to the accuracy "
        "([λ](#ngt-trade-off)).",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-outperforms", "who is better",
        "section 1: it “outperforms standard and efficient transformer baselines”; abstract: “some” of them",
        "Table 5: BERT-Base, its own encoder, is above it on both sets",
        "Measured beside the first token's vector on the same encoder: [section 7.4](#ngt-competitive).",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-cost", "cost of the estimates",
        "section 1: O(K n); sections 4.3, 6, Table 2: O(K n + n² T), of which K n is the sampling",
        "Algorithm 1, lines 34 to 48: K samples for every pair of tokens, O(K n²) evaluations of v",
        "One set of K coalitions serves the Shapley values of all tokens, another the Banzhaf values and all pairs, by "
        "matrix products. Low-rank couplings make the layer linear in n.",
        "Loops over tokens and pairs; about 1.7 hours for 4 texts of 128 tokens (our extrapolation).",
        (Option("layer", {"couplings": "linear"}),),
        "`spinformer.attention.algorithm1` has the loops",
    ),
    Contradiction(
        "contradiction-unbiased", "bias",
        "sections 1, 4.2.1: “unbiased”",
        "section 4.3: “asymptotically unbiased”",
        "The second: weights are normalised, so the bias is of order 1/K. With uniform weights there is none.",
        options=(Option("estimate", {"weighting": "uniform"}),),
    ),
    Contradiction(
        "contradiction-padding", "padding",
        "section 3.1: the players are the tokens of the text",
        "section 7.3: “truncated/padded to 128 tokens”; whether padding plays is not said",
        "Padding is never a player.",
        "Padding counts as players.",
        otherwise="call the layer without a mask",
    ),
    Contradiction(
        "contradiction-monotone", "properties of v",
        "section 3.2: v is monotone, and bounded by some M",
        "Eq. 2: a norm, which falls where vectors cancel; bounded it is, for each text",
        "The preset `default` divides by the sum of the lengths, which bounds v by 1. Neither preset makes v monotone. "
        "A grounded game has v in [0, 1].",
        options=(Option("layer", {"units": "share"}), Option("layer", {"activation": "tanh"})),
    ),
    Contradiction(
        "contradiction-inputs", "what the tokens are",
        "section 3.3: x_i = e_i + p_i, token embedding plus positional encoding",
        "section 7.3: outputs of a BERT-base encoder",
        "The layer pools the outputs of an encoder, as in section 7.3; it takes any vectors.",
        otherwise="give the layer embeddings instead",
    ),
    Contradiction(
        "contradiction-f", "the nonlinearity f",
        "Eq. 2: f is “a mild nonlinearity (e.g., ReLU or tanh)”",
        "Algorithm 1, lines 18, 28, 39: no f",
        "The identity. ReLU of a norm is the norm, and tanh is 1 for nearly every coalition of encoder outputs.",
        options=(Option("layer", {"activation": "tanh"}), Option("layer", {"activation": "relu"})),
    ),
    Contradiction(
        "contradiction-gamma", "one temperature or two",
        "Eq. 3: γ of the distribution of coalitions; section 3.11.2: γ_h, a parameter of each head",
        "Eq. 12: the same letter for the temperature of the spins; section 7.3: γ = 0.25",
        "One γ for both, one for each head; fixed in `paper`, learnt in `default`.",
        options=(Option("layer", {"learn_temperature": True}),),
    ),
    Contradiction(
        "contradiction-norm", "normalised values",
        "section 3.4, Eq. 6: divided by their sum",
        "Algorithm 1, line 50: divided by the L1 norm. Section 5.1.2 writes φ^norm and puts in 0.711, not normalised",
        "The L1 norm, which is 0 only if all values are. The two agree where no value is negative, as on encoder "
        "outputs. The example is reproduced as printed.",
        options=(Option("layer", {"normalisation": "sum"}),),
    ),
    Contradiction(
        "contradiction-target", "what is estimated",
        "Eqs. 4, 5, 9: means with Shapley's and with uniform weights; section 3.6: “a uniform weighting scheme”",
        "Eqs. 33, 35, 36: means with weights exp(v / γ). Section 4.3 calls these consistent for the former",
        "Preset `paper` has Gibbs weights, `default` uniform ones, with which Shapley values keep their axioms.",
        options=(Option("layer", {"weighting": "uniform"}), Option("layer", {"weighting": "gibbs"})),
    ),
    Contradiction(
        "contradiction-shapley-banzhaf", "Shapley and Banzhaf",
        "sections 3.4, 3.5: two different values, between which a gate chooses",
        "Eq. 32 divides by the proposal, so Eqs. 33 and 35 have one limit. Section 5.1.1: “the Banzhaf estimate is "
        "identical in form”, 0.711",
        "With uniform weights each is estimated by its own coalitions, and they differ.",
        "“Shapley” is a difference of two means, with and without the token, over uniform coalitions: a Banzhaf value.",
        (Option("layer", {"weighting": "uniform"}),),
    ),
    Contradiction(
        "contradiction-iterations", "number of iterations T",
        "sections 3.10, 4.2.2, 6: 10 to 20; section 5.2: converged after 5",
        "section 7.3: 25, tolerance 1e-4",
        "25 and 1e-4. Every output says for each text whether it converged.",
        options=(Option("layer", {"max_steps": 20}),),
    ),
    Contradiction(
        "contradiction-damping", "damping",
        "Eq. 25, Algorithm 1, line 60: none",
        "section 7.3: “damping factor 0.7”, of what is not said",
        "new = 0.7 tanh(·) + 0.3 old in `paper`; Anderson acceleration in `default`.",
        options=(Option("layer", {"damping": 1.0}), Option("layer", {"damping": 0.3})),
    ),
    Contradiction(
        "contradiction-spins", "what the classifier reads",
        "sections 3.11, 3.12: z, the sum of α_i v_i, with one spin for each token",
        "section 7.3: “the resulting equilibrium spins are passed to the classifier”; section 7.4: 128 spins, which "
        "may be one for each token, since texts are padded to 128",
        "The first. The second is a pooling head of its own, with its own row in the tables.",
        "tanh of a projection of the first token's vector to 128 numbers.",
        (Option("recipe", {"head": "spins"}), Option("recipe", {"head": "released"})),
    ),
    Contradiction(
        "contradiction-weight", "importance weight",
        "section 4.2.1, text: “v(C_k) / p(C_k)”",
        "Eq. 32: exp(v(C_k) / γ) / p(C_k)",
        "Eq. 32.",
        otherwise="no option: the text is a slip",
    ),
    Contradiction(
        "contradiction-proposal", "dividing by the proposal",
        "Eq. 32, Algorithm 1, line 19: exp(v / γ) / p",
        "sections 5.1, 6: exp(v / γ), without p",
        "Eq. 32. Without p the estimates of Shapley and of Banzhaf values would have different limits.",
        otherwise="no option",
    ),
    Contradiction(
        "contradiction-factors", "factors of 2^n",
        "sections 1, 4.3: the estimates avoid “explicit 2^n factors”",
        "Algorithm 1, lines 27 to 29 and 38 to 43: divided by p = 1 / 2^(n - 1)",
        "In logarithms, where the factor is a constant that cancels.",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-sampling", "where coalitions are drawn",
        "section 4.3: sampling “concentrates samples on high-value coalitions”",
        "section 4.2.1: coalitions are drawn uniformly, and weighted afterwards",
        "Uniformly in `paper`. Proposals that do concentrate are an option.",
        options=(Option("layer", {"proposal": "tilted"}),),
    ),
    Contradiction(
        "contradiction-magnetisation", "what α is",
        "section 3.9: α_i is the magnetisation",
        "section 3.8: α_i = (1 + ⟨s_i⟩) / 2",
        "Section 3.8.",
        otherwise="`magnetization` is in every output too",
    ),
    Contradiction(
        "contradiction-permutations", "Eq. 34",
        "Eq. 34: the probability of a set, |P|! (n - 1 - |P|)! / (n - 1)!",
        "Algorithm 1, lines 15 to 17: a size from n choices, which gives 1/n of that",
        "As printed; the factor cancels in Eq. 32.",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-variance", "rate of convergence",
        "section 4.3: “variance that decreases at the standard Monte Carlo rate of O(1/√K)”",
        "the standard rate is O(1/√K) for the error and O(1/K) for the variance",
        "Error bars are standard errors, which fall as 1/√K.",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-samples", "number of samples K",
        "sections 4.3, 6: 100 to 1,000",
        "section 7.3: 15 in training, 25 in evaluation",
        "15 and 25, as in the experiments. No K from 5 to 1,000 changes the accuracy by more than seeds do "
        "([K and T](#ngt-hyperparameters)).",
        options=(Option("size", {"samples": 100, "eval_samples": 1000}),),
    ),
    Contradiction(
        "contradiction-example-weights", "weights of the example",
        "Eq. 33: weights of contexts without the token, exp(v(P) / γ)",
        "section 5.1: weights of C_k itself, exp(v(C_k) / γ), though C_1 and C_3 hold “good”",
        "Eq. 33 in the library: v(C - i). The example is computed as section 5 does, to compare with its print.",
        otherwise="`spinformer.attention.worked_example`",
    ),
    Contradiction(
        "contradiction-example-context", "context of a pair",
        "Eq. 8: the context is C without the two tokens",
        "section 5.1.2: for C_3 = {good, movie} around “not” and “good” the empty context, where {movie} is left",
        "Eq. 8: J_12 = 0.425 instead of 0.466 ([example](#ngt-example-pair)).",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-example-spins", "converged spins",
        "section 5.2: 0.721, 0.798, 0.703 “after T = 5 iterations”",
        "Eq. 16 with its numbers: another fixed point, and these are not the exact marginals either "
        "([example](#ngt-example-converged))",
        "The fixed point of the equations.",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-sign", "“not good”",
        "section 5.1.2: the interaction of “not” and “good” is +0.466",
        "section 7.4: in “not good movie” it is “strongly negative”",
        "Signs are counted: [in the layer](#ngt-not-good), [in a classifier](#ngt-not-good-classifier).",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-data-sets", "data sets",
        "section 7.1: “each of the three different datasets”, “testing robustness to spurious patterns”",
        "Table 3 has two. The doctor and the actor of Table 4, called SNLI, are a well-known example of HANS, whose "
        "title, “Right for the Wrong Reasons”, section 8 quotes",
        "SNLI and MNLI as in Table 3; HANS, regenerated from its templates, beside them.",
        otherwise="`spinformer reproduce nli --stage heads` scores HANS",
    ),
    Contradiction(
        "contradiction-conditions", "identical conditions",
        "section 7.2: “NGT is compared against these baselines under identical conditions”",
        "section 7.2, Table 5: all baseline values are taken from another paper",
        "Every pooling head is trained by the same code, recipe and data; Table 5 is shown apart, as printed.",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-caption", "whose numbers Table 5 has",
        "Table 5, caption: “All accuracy values are taken from [24]”, which is of 2023; “Parameter counts are standard "
        "values from the respective model papers”",
        "its last row is the authors' own model; section 7.2: the “baseline results” are from [24]; section 7.4: 86.60 "
        "and 79.00 are what NGT “achieves” and “reaches”",
        "All rows as printed: the last as the authors' own result, the others as quoted.",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-pairs", "who models pairs",
        "abstract: standard attention mechanisms “are limited by their pairwise formulation”; section 1: it “relies "
        "primarily on pairwise similarity”",
        "section 7.4: “the explicit modeling of pairwise interactions” is a feature that “no other model in the "
        "comparison can offer”",
        "The couplings J_ij are interactions of a game, the scores of attention are not; what their signs say is "
        "[counted](#ngt-unique).",
        otherwise="nothing to choose",
    ),
    Contradiction(
        "contradiction-dam", "what DAM is",
        "section 7.2: it “averages word embeddings”",
        "its paper, Parikh et al. (2016): it aligns words by attention, compares them, and sums the comparisons",
        "DAM as its own paper has it.",
        options=(Option("recipe", {"head": "mean"}),),
        otherwise="which averages vectors of an encoder",
    ),
    Contradiction(
        "contradiction-mechanism", "whether the game is played",
        "section 7.3: the estimates “define the local fields J_i and pairwise interactions J_ij”",
        "the released scripts: fields and couplings are free parameters, the same for every text",
        "The equations are the reference; the scripts are not.",
        "Game values are computed on one training batch in a thousand and feed nothing.",
        (Option("recipe", {"head": "released"}),),
    ),
    Contradiction(
        "contradiction-parameters", "added parameters",
        "section 7.4: 754,000, “only 0.7% overhead”",
        "neither form has so many as we build it, with one hidden layer; the paper does not say how many it has "
        "([counted](#ngt-overhead))",
        "The form of sections 3.11 and 3.12 and that of section 7.3, each with its count.",
        "771,844 in all added modules at width 768; the head that has a part in the answer has 165,507.",
        (Option("recipe", {"head": "released"}),),
    ),
)  # fmt: skip
