//! What an operation of the gate declares beside its handler.

use gate_core::limits::Group;
use http_kit::Class;

use crate::app::App;

pub(crate) type Operation = http_kit::Operation<App, Admission>;
pub(crate) type Api = http_kit::Api<App, Admission>;

/// Who may call an operation, and which limit counts it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admission {
    pub(crate) class: Class,
    pub(crate) group: Group,
    /// Whether the partner must be entitled to rails too.
    pub(crate) rails: bool,
}

impl Admission {
    /// A secret key of a partner entitled to rails.
    pub(crate) const RAILS: Self = Self {
        rails: true,
        ..Self::secret(Group::Global)
    };
    /// A publishable key, sent by a page.
    pub(crate) const BROWSER: Self = Self::of(Class::Publishable, Group::Bootstrap);
    /// A secret key of the sandbox.
    pub(crate) const SANDBOX: Self = Self::of(Class::Sandbox, Group::Global);

    /// A secret key.
    pub(crate) const fn secret(group: Group) -> Self {
        Self::of(Class::Entitled, group)
    }

    /// The token of a widget.
    pub(crate) const fn widget(group: Group) -> Self {
        Self::of(Class::Embedded, group)
    }

    const fn of(class: Class, group: Group) -> Self {
        Self {
            class,
            group,
            rails: false,
        }
    }
}

impl AsRef<Class> for Admission {
    fn as_ref(&self) -> &Class {
        &self.class
    }
}
