"""The numbers that the paper prints. They are the only ones in the report that nobody measured."""

BESIDE = ("shapes", "vqa_v2")  # datasets whose reports show them beside

# Table 1: official accuracy on VQA-v2, all trained on train alone
TEST_DEV = {
    "discrete": {"yes/no": 86.76, "number": 52.90, "other": 60.78, "overall": 70.59},
    "unimodal": {"yes/no": 86.57, "number": 53.69, "other": 60.38, "overall": 70.41},
    "multimodal": {"yes/no": 86.62, "number": 53.23, "other": 60.46, "overall": 70.42},
}
TEST_STANDARD = {
    "discrete": {"yes/no": 86.91, "number": 53.22, "other": 61.10, "overall": 70.94},
    "unimodal": {"yes/no": 86.73, "number": 53.55, "other": 60.75, "overall": 70.73},
    "multimodal": {"yes/no": 86.88, "number": 53.31, "other": 60.79, "overall": 70.79},
}
# Table 2: Jensen–Shannon divergence from VQA-HAT
DIVERGENCE = {"discrete": 0.64, "unimodal": 0.59, "multimodal": 0.54}
# Section 6.1: shares of K* = 1 … 4 with λ = 5
SHARES = (80.8, 12.4, 4.4, 2.4)
LAMBDA = 5.0
