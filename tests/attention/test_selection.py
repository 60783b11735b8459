import pytest
import torch

import attention
from attention.seeding import restart_draw
from attention.selection import penalised_complexity, select_components
from tests.attention.examples import blobs, smooth_weights

CPU = torch.device("cpu")


def fit(weights, grid, **options):
    head = attention.build("multimodal", **options).eval()
    values = torch.randn(*weights.shape, 3, generator=torch.Generator().manual_seed(0)).double()
    return head(weights.log(), values, grid)


@pytest.mark.parametrize(
    ("log_likelihood", "lam", "selected"),
    [
        # C(k) = −1, −2.8, −2.8, −3.2; then −0.7, −2.2, −1.9, −2; then 1, 1.2, …
        ([1.0, 2.4, 2.9, 3.6], 1.0, 4),
        ([1.0, 2.4, 2.9, 3.6], 1.3, 2),
        ([1.0, 2.4, 2.9, 3.6], 3.0, 1),
        # ties go to the smaller k
        ([1.0, 2.0, 3.0], 2.0, 1),
        ([0.0, 0.0, 0.0], 0.0, 1),
        ([1.0, 2.0, 2.0], 0.0, 2),
        # rounding does not decide
        ([1.0, 1.0 + 1e-13, 1.0 + 2e-13], 0.0, 1),
    ],
)
def test_the_criterion_is_twice_the_negative_likelihood_plus_lambda_times_k(
    log_likelihood, lam, selected
):
    complexity = penalised_complexity(len(log_likelihood), "components", "full", CPU)
    likelihood = torch.tensor([log_likelihood], dtype=torch.float64)
    assert select_components(likelihood, complexity, lam).tolist() == [selected]


def test_the_penalty_counts_components_or_free_parameters():
    assert penalised_complexity(3, "components", "full", CPU).tolist() == [1, 2, 3]
    assert penalised_complexity(3, "parameters", "full", CPU).tolist() == [5, 11, 17]
    assert penalised_complexity(3, "parameters", "spherical", CPU).tolist() == [3, 7, 11]


def test_two_far_blobs_are_two_components_when_lambda_is_below_twice_the_gain():
    """0.6 apart with σ = 0.03 they gain 1.6 nats: two components for λ < 3.2, one above."""
    grid = attention.Grid.of([(19, 32)])
    weights = blobs(19, 32, [[0.5, 0.2], [0.5, 0.8]], 0.03)
    out = fit(weights, grid, lam=2.8, k_max=2, init="weighted")
    gain = out.candidates.log_likelihood[0, 1] - out.candidates.log_likelihood[0, 0]
    assert gain == pytest.approx(1.6, abs=0.15)
    assert out.mixture.num_components.tolist() == [[2]]
    assert fit(weights, grid, lam=3.4, k_max=2, init="weighted").mixture.num_components.item() == 1
    columns = out.mixture.mu[0, 0, :, 1].sort().values
    torch.testing.assert_close(columns, torch.tensor([0.2, 0.8]).double(), atol=0.01, rtol=0)


def test_candidates_of_a_smaller_k_max_are_those_of_a_larger_one_without_the_last():
    grid = attention.Grid.of([(8, 10), (10, 8)])
    weights = smooth_weights(2, grid)
    three, four = (fit(weights, grid, k_max=k).candidates for k in (3, 4))
    torch.testing.assert_close(three.log_likelihood, four.log_likelihood[:, :3])
    torch.testing.assert_close(three.context, four.context[:, :3])
    torch.testing.assert_close(three.mixture.mu, four.mixture.mu[:, :3, :3])
    torch.testing.assert_close(three.mixture.pi, four.mixture.pi[:, :3, :3])


@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("k_max", [1, 2, 3, 4])
def test_choosing_again_from_candidates_equals_another_pass(lam, k_max):
    grid = attention.Grid.of([(8, 10)] * 6)
    weights = smooth_weights(6, grid, temperature=3.0)
    candidates = fit(weights, grid, k_max=4, lam=2.0).candidates
    direct = fit(weights, grid, k_max=k_max, lam=lam)
    chosen = candidates.select(lam, k_max)
    assert torch.equal(chosen[:, None], direct.mixture.num_components)
    torch.testing.assert_close(candidates.context_of(chosen), direct.context)
    again = candidates.mixture_of(chosen)
    torch.testing.assert_close(again.mu[:, :, :k_max], direct.mixture.mu)
    torch.testing.assert_close(again.pi[:, :, :k_max], direct.mixture.pi)


@pytest.mark.parametrize(
    ("lam", "k_max", "message"),
    [(-5.0, None, "lam must be zero or positive, not -5"), (1.0, 4, r"1…3.* not 4")],
)
def test_choosing_what_cannot_be_chosen_raises(lam, k_max, message):
    grid = attention.Grid.of([(8, 10)])
    candidates = fit(smooth_weights(1, grid), grid, k_max=3).candidates
    with pytest.raises(ValueError, match=message):
        candidates.select(lam, k_max)


def test_each_candidate_is_the_likeliest_restart_of_its_size():
    grid = attention.Grid.of([(8, 10)])
    weights = smooth_weights(1, grid, temperature=3.0)
    out = fit(weights, grid, k_max=4, num_restarts=3, seed=5)
    sizes, uniforms = restart_draw(5, 4, 3, CPU)
    best = [attention.log_likelihood(attention.moment_match(weights, grid), weights, grid)[0, 0]]
    for k in (2, 3, 4):
        fitted = attention.fit_mixture(
            weights, grid, uniforms[torch.tensor(sizes) == k, :k], iterations=10
        )
        best.append(attention.log_likelihood(fitted, weights, grid)[0].max())
    torch.testing.assert_close(out.candidates.log_likelihood[0], torch.stack(best))
    assert out.candidates.mixture.num_components.tolist() == [[1, 2, 3, 4]]


def test_more_restarts_never_lower_a_likelihood():
    grid = attention.Grid.of([(8, 10)])
    weights = smooth_weights(1, grid, temperature=3.0)
    few, many = (fit(weights, grid, num_restarts=r).candidates.log_likelihood for r in (2, 6))
    assert (many >= few - 1e-9).all()
    assert (many[:, 1:] > few[:, 1:] + 1e-6).any()


def test_batch_selection_weighs_with_the_whole_batch_as_the_published_code_does():
    grid = attention.Grid.of([(8, 10)] * 3)
    weights = smooth_weights(3, grid, temperature=3.0)
    out = fit(weights, grid, selection="batch", num_restarts=1)
    for image in range(3):
        single = fit(weights[image : image + 1], attention.Grid.of([(8, 10)]), num_restarts=1)
        likelihood = sum(
            attention.log_likelihood(
                single.candidates.mixture, weights[other : other + 1], attention.Grid.of([(8, 10)])
            )[0]
            for other in range(3)
        )
        torch.testing.assert_close(out.candidates.log_likelihood[image], likelihood)


def test_a_fixed_number_of_components_at_test_time_is_that_candidate():
    grid = attention.Grid.of([(8, 10)])
    head = attention.build("multimodal").eval()
    out = head(smooth_weights(1, grid).log(), torch.randn(1, 80, 3), grid, num_components=3)
    assert out.mixture.num_components.tolist() == [[3]]
    torch.testing.assert_close(out.context, out.candidates.context[:, 2])
