//! The results that are drawn, and those that they are held against. It must not know figures.

use crate::results::load::Loaded;

/// What figures are drawn from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sides<'a> {
    /// The results.
    pub new: &'a [Loaded],
    /// What they are compared with; empty without a base.
    pub base: &'a [Loaded],
}

impl<'a> Sides<'a> {
    /// The files of the new side that are not of the base too.
    pub(super) fn only_new(self) -> impl Iterator<Item = &'a Loaded> {
        let is_same = |one: &Loaded, other: &Loaded| {
            one.path.file_name() == other.path.file_name()
                && one.result.started_at == other.result.started_at
                && one.result.nodes == other.result.nodes
        };
        let is_of_base = move |loaded: &Loaded| self.base.iter().any(|base| is_same(base, loaded));
        self.new.iter().filter(move |loaded| !is_of_base(loaded))
    }
}

impl<'a, T: AsRef<[Loaded]> + ?Sized> From<&'a T> for Sides<'a> {
    fn from(new: &'a T) -> Sides<'a> {
        let (new, base) = (new.as_ref(), &[][..]);
        Sides { new, base }
    }
}
