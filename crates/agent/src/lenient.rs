//! Fields that may have any shape: what does not fit is absent, and the rest of the event is still read.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Visitor methods that take a value of the named shapes and make nothing of it.
macro_rules! nothing_of {
    ($($shape:ident)*) => { $(nothing_of!(@ $shape);)* };
    (@ scalars) => { nothing_of!(bool numbers text null); };
    (@ bool) => { fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> { Ok(Self::Value::default()) } };
    (@ numbers) => {
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> { Ok(Self::Value::default()) }
    };
    (@ text) => { fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> { Ok(Self::Value::default()) } };
    (@ null) => { fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok(Self::Value::default()) } };
    (@ list) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (@ map) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

macro_rules! anything {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }
    };
}

/// A text, or nothing.
#[derive(Debug, Default, Clone)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.as_str() == Some(text)
    }

    pub(crate) fn owned(&self) -> Option<String> {
        self.as_str().map(str::to_owned)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Text<'de>;
            anything!();
            nothing_of!(bool numbers null list map);
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }
        }
        deserializer.deserialize_any(Of)
    }
}

/// A number, or nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Number(pub(crate) Option<f64>);

impl Number {
    /// As a count; fractions are cut, what is negative or not finite is absent.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; float casts saturate")]
    pub(crate) fn count(self) -> Option<u64> {
        self.0.filter(|n| n.is_finite() && *n >= 0.0).map(|n| n as u64)
    }

    pub(crate) fn small(self) -> Option<u32> {
        self.count().map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        #[expect(clippy::cast_precision_loss, reason = "exact below 2^53, and no count comes near")]
        impl<'de> Visitor<'de> for Of {
            type Value = Number;
            anything!();
            nothing_of!(bool text null list map);
            fn visit_i64<E>(self, n: i64) -> Result<Self::Value, E> {
                Ok(Number(Some(n as f64)))
            }
            fn visit_u64<E>(self, n: u64) -> Result<Self::Value, E> {
                Ok(Number(Some(n as f64)))
            }
            fn visit_f64<E>(self, n: f64) -> Result<Self::Value, E> {
                Ok(Number(Some(n)))
            }
        }
        deserializer.deserialize_any(Of)
    }
}

/// True or false, or nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Flag(pub(crate) Option<bool>);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Flag;
            anything!();
            nothing_of!(numbers text null list map);
            fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(Flag(Some(flag)))
            }
        }
        deserializer.deserialize_any(Of)
    }
}

/// An object, a text in its place, or nothing.
#[derive(Debug, Default, Clone)]
pub(crate) enum ObjectOrText<'a, T> {
    Object(T),
    Text(Cow<'a, str>),
    #[default]
    Nothing,
}

impl<T> ObjectOrText<'_, T> {
    pub(crate) fn object(&self) -> Option<&T> {
        match self {
            Self::Object(object) => Some(object),
            Self::Text(_) | Self::Nothing => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Object(_) | Self::Nothing => None,
        }
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for ObjectOrText<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Of<T> {
            type Value = ObjectOrText<'de, T>;
            anything!();
            nothing_of!(bool numbers null list);
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(ObjectOrText::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(ObjectOrText::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(ObjectOrText::Object)
            }
        }
        deserializer.deserialize_any(Of(PhantomData))
    }
}

/// The objects of a list, a text in its place, or nothing. Items of another shape are left out.
#[derive(Debug, Clone)]
pub(crate) enum ListOrText<'a, T> {
    List(Vec<T>),
    Text(Cow<'a, str>),
}

impl<T> Default for ListOrText<'_, T> {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for ListOrText<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Of<T> {
            type Value = ListOrText<'de, T>;
            anything!();
            nothing_of!(bool numbers null map);
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(ListOrText::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(ListOrText::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element::<ObjectOrText<'de, T>>()? {
                    if let ObjectOrText::Object(item) = item {
                        items.push(item);
                    }
                }
                Ok(ListOrText::List(items))
            }
        }
        deserializer.deserialize_any(Of(PhantomData))
    }
}

/// The texts of a list.
#[derive(Debug, Default, Clone)]
pub(crate) struct Texts<'a>(pub(crate) Vec<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Texts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Texts<'de>;
            anything!();
            nothing_of!(scalars map);
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut texts = Vec::new();
                while let Some(Text(text)) = list.next_element()? {
                    texts.extend(text);
                }
                Ok(Texts(texts))
            }
        }
        deserializer.deserialize_any(Of)
    }
}
