//! The results that are drawn, and those that they are held against.

use crate::results::load::Loaded;

/// What figures are drawn from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sides<'a> {
    pub new: &'a [Loaded],
    /// What they are compared with; empty without a base.
    pub base: &'a [Loaded],
}

impl<'a> Sides<'a> {
    /// The files of the new side that are not of the base too.
    pub(super) fn only_new(self) -> impl Iterator<Item = &'a Loaded> {
        self.new.iter().filter(move |loaded| !self.base.iter().any(|base| is_same(base, loaded)))
    }
}

fn is_same(one: &Loaded, other: &Loaded) -> bool {
    one.path.file_name() == other.path.file_name()
        && one.result.started_at == other.result.started_at
        && one.result.nodes == other.result.nodes
}

impl<'a, T: AsRef<[Loaded]> + ?Sized> From<&'a T> for Sides<'a> {
    fn from(new: &'a T) -> Sides<'a> {
        let (new, base) = (new.as_ref(), &[][..]);
        Sides { new, base }
    }
}
