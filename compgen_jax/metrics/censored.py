"""Lines through points of which some are known as bounds only: censored regression."""

import math

import numpy as np
from scipy.special import erfcx

SMALLEST_SPREAD = 1e-4  # of y: where the fit is perfect, its spread tends to zero


def censored_slopes(x_P, y_P, side_P, weights_RxP):
    """(R,) slopes of y on x under R weightings, y_P being bounds where side_P is 1 (the value is
    above) or -1 (below), by maximum likelihood (Tobin 1958), concave in (intercept, slope, 1) over
    the spread (Olsen 1978)."""
    x_P, y_P, weights_RxP = x_P - np.mean(x_P), y_P - np.mean(y_P), np.asarray(weights_RxP, float)
    slopes_R, parameters_Rx3 = _least_squares(x_P, y_P, weights_RxP)
    bounded_R = weights_RxP[:, side_P != 0].any(axis=1)
    active = np.flatnonzero(bounded_R)
    slopes_R[active] = np.nan
    features_Px3 = np.stack([-np.ones_like(x_P), -x_P, y_P], axis=1)
    for _ in range(100):
        if active.size == 0:
            break
        now, weights = parameters_Rx3[active], weights_RxP[active]
        step, decrement = _newton_step(now, features_Px3, side_P, weights)
        # the spread stays positive: at most nine tenths of the way to where it would not be
        length = 0.9 * now[:, 2] / np.maximum(-step[:, 2], 0.9 * now[:, 2])
        now = now + length[:, None] * step
        parameters_Rx3[active] = now
        done = (decrement < 1e-18) | (now[:, 2] > 1 / SMALLEST_SPREAD)
        slopes_R[active[done]] = now[done, 1] / now[done, 2]
        active = active[~done]
    return slopes_R


def _least_squares(x_P, y_P, weights_RxP):
    """Slopes (R,) and (intercept, slope, 1) / spread (R, 3), bounds taken for values."""
    total_Rx1 = weights_RxP.sum(axis=1, keepdims=True)
    x_RxP = x_P - weights_RxP @ x_P[:, None] / total_Rx1
    mean_Rx1 = weights_RxP @ y_P[:, None] / total_Rx1
    y_RxP = y_P - mean_Rx1
    slope_R = (weights_RxP * x_RxP * y_RxP).sum(1) / (weights_RxP * x_RxP**2).sum(1)
    residual_RxP = y_RxP - slope_R[:, None] * x_RxP
    spread_R = np.sqrt((weights_RxP * residual_RxP**2).sum(1) / total_Rx1[:, 0])
    intercept_R = mean_Rx1[:, 0] - slope_R * (x_P - x_RxP)[:, 0]
    line_Rx3 = np.stack([intercept_R, slope_R, np.ones_like(slope_R)], axis=1)
    # all may lie on one line exactly
    return slope_R, line_Rx3 / np.maximum(spread_R, 0.01)[:, None]


def _newton_step(parameters_Rx3, features_Px3, side_P, weights_RxP):
    """Newton's step (R, 3) and the squared decrement (R,), twice the gain it promises."""
    standard_RxP = parameters_Rx3 @ features_Px3.T
    bound_P = side_P != 0
    slope_RxP, curvature_RxP = -standard_RxP, np.ones_like(standard_RxP)
    inward_RxB = side_P[bound_P] * standard_RxP[:, bound_P]
    # pdf(z) / Q(z) of the standard normal, Q being its upper tail: 1 / Mills' ratio
    hazard_RxB = math.sqrt(2 / math.pi) / erfcx(inward_RxB / math.sqrt(2))
    slope_RxP[:, bound_P] = -side_P[bound_P] * hazard_RxB
    curvature_RxP[:, bound_P] = np.clip(hazard_RxB * (hazard_RxB - inward_RxB), 0.0, 1.0)
    outer_Px9 = (features_Px3[:, :, None] * features_Px3[:, None, :]).reshape(-1, 9)
    gradient_Rx3 = (weights_RxP * slope_RxP) @ features_Px3
    hessian_Rx3x3 = ((weights_RxP * curvature_RxP) @ outer_Px9).reshape(-1, 3, 3)
    values_R, precision_R = weights_RxP[:, ~bound_P].sum(1), parameters_Rx3[:, 2]
    gradient_Rx3[:, 2] += values_R / precision_R
    hessian_Rx3x3[:, 2, 2] += values_R / precision_R**2
    step_Rx3 = np.linalg.solve(hessian_Rx3x3, gradient_Rx3[:, :, None])[:, :, 0]
    return step_Rx3, (step_Rx3 * gradient_Rx3).sum(axis=1)
