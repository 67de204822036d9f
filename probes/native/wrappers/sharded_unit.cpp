// SPDX-License-Identifier: Apache-2.0
#include "probes/native/wrappers/sharded_unit.h"

#include <utility>

namespace gradcheck::native {

ShardedUnit::ShardedUnit(ModelTensors parameters, Cut cut, const Group& group, bool divides)
    : parameters_(std::move(parameters)),
      layout_(cut(parameters_, group.processes->getSize())),
      group_(group),
      divides_(divides) {
  const at::NoGradGuard no_grad;
  const auto rank = static_cast<std::size_t>(group.processes->getRank());
  const auto options = parameters_.front().value.detach().options();
  part_ = at::zeros({layout_.part}, options);
  gradients_ = at::zeros({layout_.part * group.processes->getSize()}, options);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& whole = parameters_[i].value;
    const Piece& piece = layout_.ranks[rank][i];
    at::Tensor mine = part_.narrow(0, piece.position, piece.numel).detach();
    mine.copy_(whole.reshape(-1).narrow(0, piece.offset, piece.numel));
    owned_.push_back(
        {mine.requires_grad_(whole.requires_grad()), piece.offset, whole.sizes().vec()});
    trainable_ += whole.requires_grad() ? 1 : 0;
  }
}

at::Tensor ShardedUnit::piece_of(const at::Tensor& flat, std::size_t rank,
                                 std::size_t parameter) const {
  const Piece& piece = layout_.ranks[rank][parameter];
  return flat.narrow(0, static_cast<std::int64_t>(rank) * layout_.part + piece.position,
                     piece.numel);
}

std::vector<at::Tensor> ShardedUnit::gather() const {
  const at::NoGradGuard no_grad;
  at::Tensor all = at::empty_like(gradients_);
  at::Tensor mine = part_;
  group_.processes->all_gather_single(all, mine)->wait();
  std::vector<at::Tensor> whole;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::vector<at::Tensor> pieces;
    for (std::size_t rank = 0; rank < layout_.ranks.size(); ++rank) {
      pieces.push_back(piece_of(all, rank, i));
    }
    whole.push_back(at::cat(pieces).view(owned_[i].shape));
  }
  return whole;
}

void ShardedUnit::take(std::size_t parameter, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = gradient.detach().reshape(-1);
  for (std::size_t rank = 0; rank < layout_.ranks.size(); ++rank) {
    const Piece& piece = layout_.ranks[rank][parameter];
    piece_of(gradients_, rank, parameter).copy_(flat.narrow(0, piece.offset, piece.numel));
  }
  ++taken_;
}

void ShardedUnit::reduce() {
  if (trainable_ == 0) return;
  const at::NoGradGuard no_grad;
  const auto rank = static_cast<std::size_t>(group_.processes->getRank());
  c10d::ReduceScatterOptions options;
  options.reduceOp = divides_ ? c10d::ReduceOp::AVG : c10d::ReduceOp::SUM;
  at::Tensor mine = at::empty_like(part_);
  group_.processes->reduce_scatter_single(mine, gradients_, options)->wait();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].value.requires_grad()) continue;
    const Piece& piece = layout_.ranks[rank][i];
    const at::Tensor fresh = mine.narrow(0, piece.position, piece.numel);
    at::Tensor& gradient = owned_[i].value.mutable_grad();
    gradient = gradient.defined() ? gradient + fresh : fresh;
  }
  gradients_.zero_();
  taken_ = 0;
}

}  // namespace gradcheck::native
