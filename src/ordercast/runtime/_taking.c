/* Deliveries, and the iterator over them, in C: taking.py says what each part does.

   This is what runs for every single message. The numbers of a delivery become objects only when
   somebody asks for them, and an iterator with messages at hand is its own awaitable, which ends
   at once: no generator is resumed, and nothing is made for a message but the delivery.

   It keeps to the limited API of Python 3.11, so one build serves that and all later versions. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

#define TYPE(object) Py_TYPE((PyObject *)(object))

/* The delivery. */

typedef struct {
    PyObject_HEAD
    PyObject *sender;
    PyObject *payload;
    long long number;
    long long position;
    long long time_us;
} Delivery;

static PyObject *
delivery_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sender", "number", "payload", "position", "time_us", NULL};
    PyObject *sender, *payload;
    long long number, position, time_us;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OLOLL:Delivery", names, &sender, &number,
                                     &payload, &position, &time_us)) {
        return NULL;
    }
    Delivery *self = PyObject_New(Delivery, type);
    if (self == NULL) {
        return NULL;
    }
    self->sender = Py_NewRef(sender);
    self->payload = Py_NewRef(payload);
    self->number = number;
    self->position = position;
    self->time_us = time_us;
    return (PyObject *)self;
}

static void
delivery_dealloc(Delivery *self)
{
    PyTypeObject *type = TYPE(self);
    Py_DECREF(self->sender);
    Py_DECREF(self->payload);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *
delivery_fields(Delivery *self)
{
    return Py_BuildValue("(OLOLL)", self->sender, self->number, self->payload, self->position,
                         self->time_us);
}

static PyObject *
delivery_reduce(Delivery *self, PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("(ON)", TYPE(self), delivery_fields(self));
}

static PyObject *
delivery_repr(Delivery *self)
{
    return PyUnicode_FromFormat(
        "Delivery(sender=%R, number=%lld, payload=%R, position=%lld, time_us=%lld)", self->sender,
        self->number, self->payload, self->position, self->time_us);
}

static PyObject *
delivery_id(Delivery *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromFormat("%S:%lld", self->sender, self->number);
}

static Py_hash_t
delivery_hash(Delivery *self)
{
    PyObject *fields = delivery_fields(self);
    if (fields == NULL) {
        return -1;
    }
    Py_hash_t hash = PyObject_Hash(fields);
    Py_DECREF(fields);
    return hash;
}

static PyObject *
delivery_compare(Delivery *self, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(other) != TYPE(self)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    Delivery *that = (Delivery *)other;
    int same = self->number == that->number && self->position == that->position
               && self->time_us == that->time_us;
    if (same) {
        same = PyObject_RichCompareBool(self->sender, that->sender, Py_EQ);
    }
    if (same > 0) {
        same = PyObject_RichCompareBool(self->payload, that->payload, Py_EQ);
    }
    return same < 0 ? NULL : PyBool_FromLong(same == (operation == Py_EQ));
}

static PyMemberDef delivery_members[] = {
    {"sender", T_OBJECT_EX, offsetof(Delivery, sender), READONLY, NULL},
    {"number", T_LONGLONG, offsetof(Delivery, number), READONLY,
     "The sender's own count of its messages, from 1."},
    {"payload", T_OBJECT_EX, offsetof(Delivery, payload), READONLY, NULL},
    {"position", T_LONGLONG, offsetof(Delivery, position), READONLY,
     "Its place among all that was delivered here, from 1: where to go on after a restart."},
    {"time_us", T_LONGLONG, offsetof(Delivery, time_us), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef delivery_properties[] = {
    {"id", (getter)delivery_id, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef delivery_methods[] = {
    {"__reduce__", (PyCFunction)delivery_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot delivery_slots[] = {
    {Py_tp_doc, "One message, as it was delivered here."},
    {Py_tp_new, delivery_new},
    {Py_tp_dealloc, delivery_dealloc},
    {Py_tp_repr, delivery_repr},
    {Py_tp_hash, delivery_hash},
    {Py_tp_richcompare, delivery_compare},
    {Py_tp_members, delivery_members},
    {Py_tp_getset, delivery_properties},
    {Py_tp_methods, delivery_methods},
    {0, NULL},
};

static PyType_Spec delivery_spec = {
    .name = "ordercast.runtime.deliveries.Delivery", /* where it is imported from */
    .basicsize = sizeof(Delivery),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = delivery_slots,
};

/* The reader. */

typedef struct {
    PyObject_HEAD
    PyTypeObject *delivery;
    PyObject *advance;
    PyObject *sender; /* NULL if no bundle is being taken */
    PyObject *payloads;
    long long first;
    long long position;
    long long time_us;
    Py_ssize_t next;
    Py_ssize_t last;
    Py_buffer ticks;
    int ticking;
} Reader;

static void
reader_let_go(Reader *self)
{
    self->next = self->last = 0;
    Py_CLEAR(self->sender);
    Py_CLEAR(self->payloads);
    if (self->ticking) {
        self->ticking = 0;
        PyBuffer_Release(&self->ticks);
    }
}

static int
reader_clear(Reader *self)
{
    reader_let_go(self);
    Py_CLEAR(self->delivery);
    Py_CLEAR(self->advance);
    return 0;
}

static int
reader_traverse(Reader *self, visitproc visit, void *arg)
{
    Py_VISIT(TYPE(self));
    Py_VISIT(self->delivery);
    Py_VISIT(self->advance);
    Py_VISIT(self->payloads);
    return 0;
}

static void
reader_dealloc(Reader *self)
{
    PyTypeObject *type = TYPE(self);
    PyObject_GC_UnTrack(self);
    reader_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *
reader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"advance", NULL};
    PyObject *advance;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Reader", names, &advance)) {
        return NULL;
    }
    PyTypeObject **delivery = PyType_GetModuleState(type);
    if (delivery == NULL) {
        return NULL;
    }
    Reader *self = (Reader *)PyType_GenericAlloc(type, 0); /* all zeros */
    if (self == NULL) {
        return NULL;
    }
    self->delivery = (PyTypeObject *)Py_NewRef((PyObject *)*delivery);
    self->advance = Py_NewRef(advance);
    return (PyObject *)self;
}

static PyObject *
reader_begin(Reader *self, PyObject *args)
{
    PyObject *sender, *payloads, *ticks;
    long long first, position, time_us;
    if (!PyArg_ParseTuple(args, "OLO!LLO:begin", &sender, &first, &PyList_Type, &payloads,
                          &position, &time_us, &ticks)) {
        return NULL;
    }
    Py_ssize_t last = PyList_Size(payloads) - 1;
    reader_let_go(self);
    if (ticks != Py_None) {
        if (PyObject_GetBuffer(ticks, &self->ticks, PyBUF_WRITABLE) < 0) {
            return NULL;
        }
        self->ticking = 1;
        if (self->ticks.len < last) {
            reader_let_go(self);
            PyErr_SetString(PyExc_ValueError, "there is no room to tick all of them off");
            return NULL;
        }
    }
    self->sender = Py_NewRef(sender);
    self->payloads = Py_NewRef(payloads);
    self->first = first;
    self->position = position;
    self->time_us = time_us;
    self->last = last;
    Py_RETURN_NONE;
}

/* The next one; NULL, and no error, if none is at hand. */
static PyObject *
take(Reader *self)
{
    Py_ssize_t place = self->next;
    if (place >= self->last) {
        return NULL;
    }
    PyObject *payload = PyList_GetItem(self->payloads, place);
    if (payload == NULL) {
        return NULL;
    }
    Delivery *taken = PyObject_New(Delivery, self->delivery);
    if (taken == NULL) {
        return NULL;
    }
    taken->sender = Py_NewRef(self->sender);
    taken->payload = Py_NewRef(payload);
    taken->number = self->first + place;
    taken->position = self->position + place;
    taken->time_us = self->time_us;
    if (self->ticking) {
        ((char *)self->ticks.buf)[place] = 1;
    }
    self->next = place + 1;
    return (PyObject *)taken;
}

static PyObject *
reader_take(Reader *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *taken = take(self);
    if (taken == NULL && !PyErr_Occurred()) {
        Py_RETURN_NONE;
    }
    return taken;
}

static PyObject *
reader_taken(Reader *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(self->next);
}

static PyObject *
reader_drop(Reader *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *taken = PyLong_FromSsize_t(self->next);
    reader_let_go(self);
    return taken;
}

static PyObject *
reader_itself(PyObject *self)
{
    return Py_NewRef(self);
}

/* What is awaited for the next one: the reader itself if it is at hand, else a coroutine. */
static PyObject *
reader_anext(Reader *self)
{
    if (self->next < self->last) {
        return Py_NewRef((PyObject *)self);
    }
    return PyObject_CallNoArgs(self->advance);
}

/* Somebody else may have taken the last one at hand since then. */
static PyObject *
reader_await(Reader *self)
{
    PyObject *awaited = reader_anext(self);
    if (awaited == NULL || awaited == (PyObject *)self) {
        return awaited;
    }
    PyObject *iterator = PyObject_CallMethod(awaited, "__await__", NULL);
    Py_DECREF(awaited);
    return iterator;
}

/* `await` gets here right after `reader_await`, with nothing in between. */
static PyObject *
take_surely(Reader *self)
{
    PyObject *taken = take(self);
    if (taken == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_RuntimeError, "what was at hand is gone: await the group anew");
    }
    return taken;
}

static PySendResult
reader_send(Reader *self, PyObject *Py_UNUSED(value), PyObject **result)
{
    *result = take_surely(self);
    return *result == NULL ? PYGEN_ERROR : PYGEN_RETURN;
}

static PyObject *
reader_next(Reader *self)
{
    PyObject *taken = take_surely(self);
    if (taken != NULL) {
        PyErr_SetObject(PyExc_StopIteration, taken);
        Py_DECREF(taken);
    }
    return NULL;
}

static PyGetSetDef reader_properties[] = {
    {"taken", (getter)reader_taken, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef reader_methods[] = {
    {"begin", (PyCFunction)reader_begin, METH_VARARGS, NULL},
    {"take", (PyCFunction)reader_take, METH_NOARGS, NULL},
    {"drop", (PyCFunction)reader_drop, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_new, reader_new},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_clear, reader_clear},
    {Py_tp_getset, reader_properties},
    {Py_tp_methods, reader_methods},
    {Py_tp_iter, reader_itself},
    {Py_tp_iternext, reader_next},
    {Py_am_await, reader_await},
    {Py_am_aiter, reader_itself},
    {Py_am_anext, reader_anext},
    {Py_am_send, reader_send},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "ordercast.runtime.deliveries.Reader",
    .basicsize = sizeof(Reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = reader_slots,
};

/* The module: its state is the type of deliveries. */

static int
module_exec(PyObject *module)
{
    PyTypeObject **delivery = PyModule_GetState(module);
    *delivery = (PyTypeObject *)PyType_FromModuleAndSpec(module, &delivery_spec, NULL);
    if (*delivery == NULL) {
        return -1;
    }
    PyObject *names = Py_BuildValue("(sssss)", "sender", "number", "payload", "position", "time_us");
    if (names == NULL) {
        return -1;
    }
    int failed = PyObject_SetAttrString((PyObject *)*delivery, "__match_args__", names);
    Py_DECREF(names);
    if (failed || PyModule_AddObjectRef(module, "Delivery", (PyObject *)*delivery) < 0) {
        return -1;
    }
    PyObject *reader = PyType_FromModuleAndSpec(module, &reader_spec, NULL);
    if (reader == NULL) {
        return -1;
    }
    failed = PyModule_AddObjectRef(module, "Reader", reader);
    Py_DECREF(reader);
    return failed;
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    PyTypeObject **delivery = PyModule_GetState(module);
    Py_VISIT(*delivery);
    return 0;
}

static int
module_clear(PyObject *module)
{
    PyTypeObject **delivery = PyModule_GetState(module);
    Py_CLEAR(*delivery);
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "ordercast.runtime._taking",
    .m_size = sizeof(PyTypeObject *),
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC
PyInit__taking(void)
{
    return PyModuleDef_Init(&module_definition);
}
