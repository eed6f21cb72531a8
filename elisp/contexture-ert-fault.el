;;; contexture-ert-fault.el --- Servers that die, stop or dawdle  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What can befall the server of a test: it is killed, stopped, or slow.
;; Each function returns only when it is so.

;;; Code:

(require 'cl-lib)
(require 'contexture-rpc)
(require 'contexture-connection)
(eval-when-compile (require 'subr-x))

(defun contexture-ert-server-pid ()
  "Return the process id of the test's server; start it if none runs.
In a batch Emacs this is not the id of the connection's process, which is
a shell that outlives the server."
  (unless (contexture-running-p) (contexture-request 'ping))
  (plist-get (oref contexture--connection info) :pid))

(defun contexture-ert-kill-server (&optional unnoticed)
  "Kill the test's server with SIGKILL, and wait until it is gone.
Emacs has noticed then, too, unless UNNOTICED is non-nil."
  (let ((pid (contexture-ert-server-pid))
        (process (oref contexture--connection process)))
    (signal-process pid 'SIGKILL)
    (contexture-ert--until (lambda () (contexture-ert--dead-p pid)))
    (unless unnoticed
      (contexture-ert--until
       (lambda ()
         (accept-process-output nil 0.01)
         (not (eq process (oref contexture--connection process))))))))

(defun contexture-ert-stop-server ()
  "Stop the test's server with SIGSTOP, and wait until it has stopped.
It lives, but answers nothing until `contexture-ert-continue-server'."
  (let ((pid (contexture-ert-server-pid)))
    (signal-process pid 'SIGSTOP)
    (contexture-ert--until
     (lambda () (member (contexture-ert--process-state pid) '(nil "T"))))))

(defun contexture-ert-continue-server (&optional pid)
  "Have the stopped server of the test go on, or process PID."
  (let ((pid (or pid (contexture-ert-server-pid))))
    (signal-process pid 'SIGCONT)
    (contexture-ert--until
     (lambda () (not (equal (contexture-ert--process-state pid) "T"))))))

(defmacro contexture-ert-with-stopped-server (&rest body)
  "Run BODY while the test's server is stopped, and have it go on then."
  (declare (indent 0) (debug t))
  (let ((pid (make-symbol "pid")))
    `(let ((,pid (contexture-ert-server-pid)))
       (contexture-ert-stop-server)
       (unwind-protect (progn ,@body)
         (contexture-ert-continue-server ,pid)))))

(defun contexture-ert-slow-server (seconds)
  "Have all that the test's server says arrive SECONDS later.
Nil makes it fast again, for what it says from then on."
  (contexture-ert-server-pid)           ; which starts it
  (set-process-filter
   (oref contexture--connection process)
   (if seconds
       (lambda (process chunk)
         (run-at-time seconds nil #'contexture--filter process chunk))
     #'contexture--filter)))

(defun contexture-ert--process-state (pid)
  "Return the state of process PID, a string such as \"T\", or nil if unknown."
  (alist-get 'state (process-attributes pid)))

(defun contexture-ert--dead-p (pid)
  "Return non-nil if process PID is gone, or waits to be reaped."
  (or (not (eql 0 (signal-process pid 0)))
      (member (contexture-ert--process-state pid) '("Z" "X"))))

(defun contexture-ert--until (predicate)
  "Wait until PREDICATE returns non-nil, at most five seconds.
Nothing else runs meanwhile, unless PREDICATE itself waits."
  (let ((end (+ (float-time) 5)))
    (while (not (funcall predicate))
      (when (> (float-time) end)
        (error "The server did not do as it was told")))))

(provide 'contexture-ert-fault)
;;; contexture-ert-fault.el ends here
