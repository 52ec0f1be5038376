"""Backpropagation through time by hand: each layer is one autograd function with few products.

The products with the inputs are one product over all positions; only those with h go step by step.
Backwards, the gradient of a repeated weight is the sum over its appearances [IITD-1 "Backpropagation for
RNNs"], and that sum is one product too: all gates transposed times all states. What does not depend on the
gradient is computed for all positions beforehand. Plain equivalents: `blocks.cells`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from nextword.blocks.cells import Activation
from nextword.system.threads import for_steps


def product_type(x: Tensor) -> torch.dtype:
    """Return the type of matrix products: autocast's, where it is on; sums and states keep their own."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def no_autocast(x: Tensor) -> torch.autocast:
    """Switch autocast off, since types are chosen here by hand."""
    return torch.autocast(x.device.type, enabled=False)


def project(x_TBE: Tensor, weight_GE: Tensor, bias_G: Tensor, low: torch.dtype) -> Tensor:
    """Compute x Wᵀ + b of all positions, in a new tensor."""
    if low == bias_G.dtype:
        return F.linear(x_TBE.to(low), weight_GE, bias_G)
    return F.linear(x_TBE.to(low), weight_GE.to(low)).to(bias_G.dtype).add_(bias_G)


def project_back(
    d_TBG: Tensor, x_TBE: Tensor, weight_GE: Tensor, low: torch.dtype, needs_x: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Return the gradients of x, W and b from those of the products."""
    d_NG = d_TBG.flatten(0, 1)
    low_NG = d_NG.to(low)
    dx_TBE = (low_NG @ weight_GE.to(low)).view(x_TBE.shape).to(x_TBE.dtype) if needs_x else None
    dweight_GE = low_NG.T @ x_TBE.flatten(0, 1).to(low)
    return dx_TBE, dweight_GE.to(weight_GE.dtype), d_NG.sum(0)


def add_product(sum_BG: Tensor, h_BH: Tensor, weight_HG: Tensor) -> None:
    """Compute sum += h W, in place."""
    if weight_HG.dtype == sum_BG.dtype:
        torch.addmm(sum_BG, h_BH, weight_HG, out=sum_BG)
    else:
        sum_BG.add_(h_BH.to(weight_HG.dtype) @ weight_HG)


def turned(weight_GH: Tensor, low: torch.dtype) -> Tensor:
    """Return the matrix with contiguous columns: few rows times this is a faster product."""
    return weight_GH.to(low).T.contiguous().T


def over_time(d_TBG: Tensor, h_TBH: Tensor, low: torch.dtype) -> Tensor:
    """Compute the gradient of a repeated weight: Σ over positions and rows of d ⊗ h, as one product."""
    return (d_TBG.flatten(0, 1).to(low).T @ h_TBH.flatten(0, 1).to(low)).to(d_TBG.dtype)


def slope_times(out: Tensor, factor: Tensor, gate: Tensor) -> None:
    """Set out = factor ∘ gate ∘ (1 - gate): the slope of a sigmoid as a function of its value."""
    torch.mul(factor, gate, out=out)
    out.addcmul_(out, gate, value=-1)


def states_after(h_BH: Tensor, positions: int) -> Tensor:
    """Allocate the states before and after every position, with the first filled in."""
    h_SBH = h_BH.new_empty(positions + 1, *h_BH.shape)
    h_SBH[0] = h_BH
    return h_SBH


class RNNFunction(torch.autograd.Function):
    """h(t) = σ(W_h h(t-1) + W_x x(t) + b) over all positions."""

    @staticmethod
    def forward(
        ctx: Any,
        x_TBE: Tensor,
        h_BH: Tensor,
        x_weight: Tensor,
        bias: Tensor,
        h_weight: Tensor,
        sigma: Activation,
    ) -> Tensor:
        """Return ``h_TBH``."""
        low = product_type(x_TBE)
        with no_autocast(x_TBE):
            h_TBH = project(x_TBE, x_weight, bias, low)
            weight_HH, before_BH = h_weight.to(low).T, h_BH
            with for_steps(len(h_BH)):
                for sum_BH in h_TBH.unbind(0):
                    add_product(sum_BH, before_BH, weight_HH)
                    before_BH = sigma.value_(sum_BH)
        ctx.save_for_backward(x_TBE, h_BH, x_weight, h_weight, h_TBH)
        ctx.low, ctx.sigma = low, sigma
        return h_TBH

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute g(t) = dL/dh(t) + W_hᵀ d(t+1); d(t) = g(t) ∘ σ'."""
        x_TBE, h_BH, x_weight, h_weight, h_TBH = ctx.saved_tensors
        with no_autocast(x_TBE):
            d_TBH = ctx.sigma.slope(h_TBH)
            weight_HH = turned(h_weight, ctx.low)
            g_BH = gradients[0][-1]
            steps = zip(d_TBH.unbind(0), (torch.zeros_like(h_BH), *gradients[0][:-1].unbind(0)), strict=True)
            with for_steps(len(h_BH)):
                for d_BH, next_BH in reversed(list(steps)):
                    d_BH.mul_(g_BH)
                    g_BH = next_BH.clone()
                    add_product(g_BH, d_BH, weight_HH)
            before_TBH = torch.cat([h_BH[None], h_TBH[:-1]])
            dx, dx_weight, dbias = project_back(d_TBH, x_TBE, x_weight, ctx.low, ctx.needs_input_grad[0])
            return dx, g_BH, dx_weight, dbias, over_time(d_TBH, before_TBH, ctx.low), None


class LSTMFunction(torch.autograd.Function):
    """The LSTM over all positions, with the cell after each: for rows of different lengths."""

    @staticmethod
    def forward(
        ctx: Any, x_TBE: Tensor, h_BH: Tensor, c_BH: Tensor, x_weight: Tensor, bias: Tensor, h_weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return ``h_TBH`` and ``c_TBH``."""
        low, T = product_type(x_TBE), len(x_TBE)
        with no_autocast(x_TBE):
            gates_TBG = project(x_TBE, x_weight, bias, low)
            h_SBH, c_SBH = states_after(h_BH, T), states_after(c_BH, T)
            weight_HG = h_weight.to(low).T
            tanh_TBH = torch.empty_like(h_SBH[1:])
            h, c, tanh_c = h_SBH.unbind(0), c_SBH.unbind(0), tanh_TBH.unbind(0)
            i, f, new, o = (part_TBH.unbind(0) for part_TBH in gates_TBG.chunk(4, dim=-1))
            i_f = gates_TBG[..., : 2 * h_BH.shape[-1]].unbind(0)
            with for_steps(len(h_BH)):
                for t, gates_BG in enumerate(gates_TBG.unbind(0)):
                    add_product(gates_BG, h[t], weight_HG)
                    i_f[t].sigmoid_()
                    new[t].tanh_()
                    o[t].sigmoid_()
                    torch.mul(f[t], c[t], out=c[t + 1]).addcmul_(i[t], new[t])
                    torch.mul(o[t], torch.tanh(c[t + 1], out=tanh_c[t]), out=h[t + 1])
        ctx.save_for_backward(x_TBE, x_weight, h_weight, gates_TBG, h_SBH, c_SBH, tanh_TBH)
        ctx.low = low
        return h_SBH[1:], c_SBH[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute dc(t) = dL/dc(t) + dh(t) ∘ o ∘ (1 - tanh² c) + f(t+1) ∘ dc(t+1), then the gates."""
        x_TBE, x_weight, h_weight, gates_TBG, h_SBH, c_SBH, tanh_TBH = ctx.saved_tensors
        T, H = len(x_TBE), h_SBH.shape[-1]
        with no_autocast(x_TBE):
            i, f, new, o = gates_TBG.chunk(4, dim=-1)
            d_TBG = torch.empty_like(gates_TBG)
            di, df, dnew, do = d_TBG.chunk(4, dim=-1)
            slope_times(di, new, i)
            slope_times(df, c_SBH[:-1], f)
            torch.addcmul(i, torch.mul(new, new, out=dnew), i, value=-1, out=dnew)
            slope_times(do, tanh_TBH, o)
            to_c_TBH = torch.addcmul(o, o, tanh_TBH.square(), value=-1)
            from_c = d_TBG[..., : 3 * H].view(T, -1, 3, H).unbind(0)
            dh_BH, dc_BH = gradients[0][-1], torch.zeros_like(h_SBH[0])
            nothing_BH, weight_GH = torch.zeros_like(dc_BH), turned(h_weight, ctx.low)
            earlier = (nothing_BH, *gradients[0].unbind(0))
            dc, to_c, f_, do_, d = (part.unbind(0) for part in (gradients[1], to_c_TBH, f, do, d_TBG))
            with for_steps(h_SBH.shape[1]):
                for t in range(T - 1, -1, -1):
                    dc_BH = dc_BH.add(dc[t]).addcmul_(dh_BH, to_c[t])
                    do_[t].mul_(dh_BH)
                    from_c[t].mul_(dc_BH[:, None])
                    dc_BH = dc_BH * f_[t]
                    dh_BH = earlier[t].clone()
                    add_product(dh_BH, d[t], weight_GH)
            dx, dx_weight, dbias = project_back(d_TBG, x_TBE, x_weight, ctx.low, ctx.needs_input_grad[0])
            return dx, dh_BH, dc_BH, dx_weight, dbias, over_time(d_TBG, h_SBH[:-1], ctx.low)


class GRUFunction(torch.autograd.Function):
    """The slide's GRU over all positions: the state is reset before its product."""

    @staticmethod
    def forward(
        ctx: Any,
        x_TBE: Tensor,
        h_BH: Tensor,
        x_weight: Tensor,
        bias: Tensor,
        h_weight: Tensor,
        new_weight: Tensor,
    ) -> Tensor:
        """Return ``h_TBH``; the stacked gates are r, u and h̃."""
        low, T, H = product_type(x_TBE), len(x_TBE), h_BH.shape[-1]
        with no_autocast(x_TBE):
            all_TBG = project(x_TBE, x_weight, bias, low)
            h_SBH = states_after(h_BH, T)
            kept_TBH = torch.empty_like(h_SBH[1:])
            h, kept, r_u = h_SBH.unbind(0), kept_TBH.unbind(0), all_TBG[..., : 2 * H].unbind(0)
            r, u, new = (part_TBH.unbind(0) for part_TBH in all_TBG.chunk(3, dim=-1))
            gates_weight, content_weight = h_weight.to(low).T, new_weight.to(low).T
            with for_steps(len(h_BH)):
                for t in range(T):
                    add_product(r_u[t], h[t], gates_weight)
                    r_u[t].sigmoid_()
                    add_product(new[t], torch.mul(r[t], h[t], out=kept[t]), content_weight)
                    torch.lerp(h[t], new[t].tanh_(), u[t], out=h[t + 1])
        ctx.save_for_backward(x_TBE, x_weight, h_weight, new_weight, all_TBG, h_SBH, kept_TBH)
        ctx.low = low
        return h_SBH[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute g(t-1) = dL/dh(t-1) + (1 - u) ∘ g + r ∘ (W_hᵀ dh̃) + W_urᵀ (du, dr)."""
        x_TBE, x_weight, h_weight, new_weight, all_TBG, h_SBH, kept_TBH = ctx.saved_tensors
        T, H = len(x_TBE), h_SBH.shape[-1]
        with no_autocast(x_TBE):
            r, u, new = all_TBG.chunk(3, dim=-1)
            d_TBG = torch.empty_like(all_TBG)
            dr, du, dnew = d_TBG.chunk(3, dim=-1)
            slope_times(dr, h_SBH[:-1], r)
            slope_times(du, new - h_SBH[:-1], u)
            torch.addcmul(u, torch.mul(new, new, out=dnew), u, value=-1, out=dnew)
            keep = (1 - u).unbind(0)
            gates_weight, content_weight = turned(h_weight, ctx.low), turned(new_weight, ctx.low)
            u_new = d_TBG[..., H:].view(T, -1, 2, H).unbind(0)
            earlier = (torch.zeros_like(h_SBH[0]), *gradients[0].unbind(0))
            r_, dr_, dnew_, gates = (part.unbind(0) for part in (r, dr, dnew, d_TBG[..., : 2 * H]))
            g_BH = earlier[T]
            with for_steps(h_SBH.shape[1]):
                for t in range(T - 1, -1, -1):
                    u_new[t].mul_(g_BH[:, None])
                    through_BH = (dnew_[t].to(ctx.low) @ content_weight).to(g_BH.dtype)
                    dr_[t].mul_(through_BH)
                    g_BH = torch.addcmul(earlier[t], g_BH, keep[t]).addcmul_(through_BH, r_[t])
                    add_product(g_BH, gates[t], gates_weight)
            dx, dx_weight, dbias = project_back(d_TBG, x_TBE, x_weight, ctx.low, ctx.needs_input_grad[0])
            dh_weight = over_time(d_TBG[..., : 2 * H], h_SBH[:-1], ctx.low)
            return dx, g_BH, dx_weight, dbias, dh_weight, over_time(dnew, kept_TBH, ctx.low)


class TorchGRUFunction(torch.autograd.Function):
    """The library's GRU over all positions: the reset gate acts after the product."""

    @staticmethod
    def forward(
        ctx: Any,
        x_TBE: Tensor,
        h_BH: Tensor,
        x_weight: Tensor,
        bias: Tensor,
        h_weight: Tensor,
        h_bias: Tensor,
    ) -> Tensor:
        """Return ``h_TBH``; the stacked gates are r, z and n."""
        low, T, H = product_type(x_TBE), len(x_TBE), h_BH.shape[-1]
        with no_autocast(x_TBE):
            all_TBG = project(x_TBE, x_weight, bias, low)
            from_h_TBG = h_bias.expand_as(all_TBG).contiguous()
            h_SBH = states_after(h_BH, T)
            h, from_h, weight_HG = h_SBH.unbind(0), from_h_TBG.unbind(0), h_weight.to(low).T
            r_z, from_h_r_z = all_TBG[..., : 2 * H].unbind(0), from_h_TBG[..., : 2 * H].unbind(0)
            from_h_n = from_h_TBG[..., 2 * H :].unbind(0)
            r, z, n = (part_TBH.unbind(0) for part_TBH in all_TBG.chunk(3, dim=-1))
            with for_steps(len(h_BH)):
                for t in range(T):
                    add_product(from_h[t], h[t], weight_HG)
                    r_z[t].add_(from_h_r_z[t]).sigmoid_()
                    n[t].addcmul_(r[t], from_h_n[t]).tanh_()
                    torch.lerp(n[t], h[t], z[t], out=h[t + 1])
        ctx.save_for_backward(x_TBE, x_weight, h_weight, all_TBG, from_h_TBG[..., 2 * H :], h_SBH)
        ctx.low = low
        return h_SBH[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute g(t-1) = dL/dh(t-1) + z ∘ g + W_hᵀ (dr, dz, r ∘ dn); gates are g times known factors."""
        x_TBE, x_weight, h_weight, all_TBG, from_h_n, h_SBH = ctx.saved_tensors
        T, H = len(x_TBE), h_SBH.shape[-1]
        with no_autocast(x_TBE):
            r, z, n = all_TBG.chunk(3, dim=-1)
            d_TBG, g_TBH = torch.empty_like(all_TBG), torch.empty_like(h_SBH[1:])
            dr, dz, dfrom_h_n = d_TBG.chunk(3, dim=-1)
            slope_times(dz, h_SBH[:-1] - n, z)
            to_n_TBH = (1 - z).mul_(torch.addcmul(torch.ones_like(n), n, n, value=-1))
            torch.mul(to_n_TBH, r, out=dfrom_h_n)
            torch.mul(dfrom_h_n, from_h_n, out=dr)
            dr.addcmul_(dr, r, value=-1)
            gates = d_TBG.view(T, -1, 3, H).unbind(0)
            d, g, z_ = d_TBG.unbind(0), g_TBH.unbind(0), z.unbind(0)
            earlier = (torch.zeros_like(h_SBH[0]), *gradients[0].unbind(0))
            weight_GH = turned(h_weight, ctx.low)
            g[T - 1].copy_(earlier[T])
            before = (torch.empty_like(h_SBH[0]), *g)
            with for_steps(h_SBH.shape[1]):
                for t in range(T - 1, -1, -1):
                    gates[t].mul_(g[t][:, None])
                    torch.addcmul(earlier[t], g[t], z_[t], out=before[t])
                    add_product(before[t], d[t], weight_GH)
            dh_weight, dh_bias = over_time(d_TBG, h_SBH[:-1], ctx.low), d_TBG.flatten(0, 1).sum(0)
            torch.mul(g_TBH, to_n_TBH, out=dfrom_h_n)  # from here on d_TBG belongs to the words' products
            dx, dx_weight, dbias = project_back(d_TBG, x_TBE, x_weight, ctx.low, ctx.needs_input_grad[0])
            return dx, before[0], dx_weight, dbias, dh_weight, dh_bias
