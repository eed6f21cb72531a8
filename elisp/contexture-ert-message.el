;;; contexture-ert-message.el --- What a test said and heard  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The messages of a test, both ways: to look at, to wait for, to judge,
;; and to show where a test fails.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'seq)
(require 'contexture-connection)
(require 'contexture-ert-exchange)
(require 'contexture-ert-wait)
(eval-when-compile (require 'subr-x))

(defvar contexture--connection)

(defvar contexture-ert--lines nil
  "Messages sent and received in this test, the newest first.
Each is a list of `sent' or `received', and the line.")

(defun contexture-ert--note-line (direction line)
  "Record that LINE went in DIRECTION, `sent' or `received'.
LINE is parsed only on demand, since it may be long."
  (push (list direction (string-trim-right line "\n")) contexture-ert--lines))

(defun contexture-ert-messages ()
  "Return every message of this test, both ways, the oldest first.
Each is a pair of `sent' or `received' and the message, a property
list with :id, :method (a string), :params, :result or :error.  A line
from the server that is not a message is a string."
  (cl-loop for (direction line) in (reverse contexture-ert--lines)
           for message = (contexture-ert--decode line)
           if message collect (cons direction message)
           else if (and (eq direction 'received)
                        (not (string-match-p "\\`[ \t\r]*\\(?:;\\|\\'\\)" line)))
           collect (cons direction line)))

(defun contexture-ert-calls (&optional method)
  "Return the parameters of all calls of METHOD, a symbol, in order.
Those inside of a batch count, too.  Without METHOD return all calls, as
pairs of method and parameters, and a batch as one.  A call counts when
it is sent, so a call made before the server is there counts later."
  (let ((calls (cl-loop for (direction . message) in (contexture-ert-messages)
                        for name = (and (eq direction 'sent) (plist-get message :method))
                        when name collect (cons (intern name) (plist-get message :params)))))
    (if method
        (cl-loop for (name . params) in (cl-mapcan #'contexture-ert--batched calls)
                 when (eq name method) collect params)
      calls)))

(defun contexture-ert--batched (call)
  "Return a list of CALL, a pair of method and parameters, and those inside of it."
  (cons call
        (when (eq (car call) 'batch)
          (mapcar (lambda (it)
                    (cons (intern (format "%s" (plist-get it :method)))
                          (plist-get it :params)))
                  (plist-get (cdr call) :calls)))))

(defun contexture-ert-should-called (method &optional params)
  "Fail unless METHOD, a symbol, was called with parameters like PARAMS.
PARAMS, a property list, may leave out parameters; so may the property
lists inside PARAMS.  Return the parameters of the first such call.  Wait for
calls that are still to be sent."
  (contexture-ert-wait-until
   (lambda () (or (contexture-ert--find-call method params)
                  (contexture-ert--quiet-p)))
   :message "a call was not answered")
  (if-let* ((calls (contexture-ert--find-call method params)))
      (car calls)
    (ert-fail (list 'never-called method :with params
                    :but (or (mapcar (lambda (call) (cons method call))
                                     (contexture-ert-calls method))
                             (contexture-ert-calls))))))

(define-obsolete-function-alias 'contexture-ert-should-have-called
  #'contexture-ert-should-called "0.1.0")

(defun contexture-ert-should-not-called (method &optional params)
  "Fail if METHOD, a symbol, was called with parameters like PARAMS.
PARAMS are as in `contexture-ert-should-called'.  First wait until all
calls are answered."
  (contexture-ert-wait-until #'contexture-ert--quiet-p
                             :message "a call was not answered")
  (when-let* ((calls (contexture-ert--find-call method params)))
    (ert-fail (list 'called method :with (car calls)))))

(defun contexture-ert--find-call (method params)
  "Return a list that begins with the first call of METHOD like PARAMS, or nil."
  (cl-member-if (lambda (call)
                  (or (null params) (contexture-ert--includes-p call params)))
                (contexture-ert-calls method)))

(defun contexture-ert-await (pattern &optional direction)
  "Wait for a message that has all of PATTERN, a property list; return it.
DIRECTION is `received', which is the default, or `sent'.  A name in
PATTERN stands for that method:

    (contexture-ert-await \\='(:method progress :params (:kind :text)))"
  (let ((pattern (if-let* ((method (plist-get pattern :method)))
                     (plist-put (copy-sequence pattern) :method
                                (format "%s" method))
                   pattern))
        (direction (or direction 'received)))
    (contexture-ert-wait-until
     (lambda ()
       (cdr (cl-find-if (lambda (entry)
                          (and (eq (car entry) direction) (consp (cdr entry))
                               (contexture-ert--includes-p (cdr entry) pattern)))
                        (contexture-ert-messages))))
     :form pattern
     :message (lambda ()
                (list direction (cl-loop for entry in (contexture-ert-messages)
                                         when (eq (car entry) direction)
                                         collect (cdr entry)))))))

(defun contexture-ert--includes-p (value part)
  "Return non-nil if VALUE contains all of PART."
  (if (and part value (contexture-ert--plist-p part) (contexture-ert--plist-p value))
      (cl-loop for (key wanted) on part by #'cddr
               always (contexture-ert--includes-p (plist-get value key) wanted))
    (equal value part)))

(defun contexture-ert--quiet-p ()
  "Return non-nil if no call waits to be sent or answered."
  (or (null contexture--connection)
      (and (null (oref contexture--connection outbox))
           (zerop (hash-table-count (oref contexture--connection unanswered))))))

;;;; Explaining a failure

(defconst contexture-ert--shown-lines 30
  "Number of messages to show of a test that failed.")

(defun contexture-ert--explanation (log)
  "Return what explains why a test failed: the messages and LOG.
LOG is what the server wrote to stderr."
  (concat
   (contexture-ert--paragraph
    "Messages"
    (mapcar (pcase-lambda (`(,direction ,line))
              (concat (if (eq direction 'sent) "> " "< ") line))
            (reverse (seq-take contexture-ert--lines contexture-ert--shown-lines))))
   (contexture-ert--paragraph
    "The server wrote" (split-string (string-trim log) "\n" t))))

(provide 'contexture-ert-message)
;;; contexture-ert-message.el ends here
