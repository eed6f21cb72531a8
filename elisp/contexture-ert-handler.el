;;; contexture-ert-handler.el --- Servers written in Lisp  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A server of a test that a function of the test answers for, so that it
;; can say to Contexture's client anything, also what no real server would:
;;
;;     (contexture-ert-with-handler
;;         (lambda (method _params)
;;           (pcase method
;;             ('list-items '(result nil))
;;             ('undo '(error 1 "there is nothing to undo"))
;;             ('ping '((raw "half a li") hang-up))))
;;       (my-command))
;;
;; With :server, a real server answers all other calls.

;;; Code:

(require 'contexture-ert-exchange)
(eval-when-compile (require 'subr-x))

(declare-function contexture-ert--call-with-server "contexture-ert" t)
(declare-function contexture-ert--isolated "contexture-ert" (function))

(push '(contexture llm-ert--next-line contexture-ert--as-line
                   contexture-ert--read contexture-ert--print)
      llm-ert--framings)

(defmacro contexture-ert-with-handler (function &rest body)
  "Run BODY with a server of Contexture whose calls FUNCTION answers.
FUNCTION is as in `llm-ert-with-server'.  If it returns nil for a call,
the call gets the error that there is no such method.  The calls with
which Contexture's client greets a server are answered even then.

If BODY begins with :server KEYS, a real server answers each call for
which FUNCTION returns nil.  KEYS, which may be t, are a property list
of keywords for `contexture-ert-with-server'.

The test fails if FUNCTION fails."
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (llm-ert--split-keys body)))
    `(contexture-ert--call-with-handler ,function (lambda () ,@forms) ,@keys)))

(cl-defun contexture-ert--call-with-handler (answers function &key server)
  "Call FUNCTION with a server that ANSWERS.
SERVER is as in `contexture-ert-with-handler'."
  (let ((body (lambda ()
                (let ((command (and server (contexture--server-command)))
                      (contexture-server-command "no server, but a handler"))
                  (llm-ert--call-serving
                   (llm-ert--make-server
                    :function answers :framing 'contexture
                    :note #'ignore      ; the client notes what it says and hears
                    :default (if command (contexture-ert--passing-on command)
                               #'contexture-ert--handler-default))
                   (lambda ()
                     (setq contexture--connection
                           (contexture--new-connection
                            (list :tcp "127.0.0.1" (llm-ert-port))))
                     (funcall function)))))))
    (if server
        (apply #'contexture-ert--call-with-server body (and (consp server) server))
      (contexture-ert--isolated body))))

(defun contexture-ert--as-line (line)
  "Return LINE, which ends in a newline, as it is sent."
  line)

(defun contexture-ert--read (line)
  "Return the message in LINE, undecoded."
  (or (contexture-ert--decode (decode-coding-string line 'utf-8))
      '(:method nil)))

(defun contexture-ert--print (message)
  "Return MESSAGE as a line."
  (encode-coding-string (car (contexture--encode message)) 'utf-8))

(defun contexture-ert--handler-default (server message)
  "Return what answers MESSAGE to SERVER where its function returned nil."
  (if-let* ((result (and (plist-get message :id) (contexture-ert--greeting message))))
      (list (list 'result result))
    (llm-ert--no-such-method server message)))

(defun contexture-ert--passing-on (command)
  "Return a function that passes messages on to a real server.
COMMAND starts that, with the first message."
  (let (real)
    (lambda (server message)
      (unless real
        (setq real
              (make-process
               :name "contexture-ert-server" :connection-type 'pipe
               :command (contexture--unbroken command)
               :coding 'binary :noquery t :sentinel #'ignore
               :stderr (contexture--log-pipe)
               :filter (lambda (process chunk)
                         (llm-ert--each-message
                          'contexture process chunk
                          (lambda (line)
                            (llm-ert--send (llm-ert--server-client server)
                                           (concat line "\n"))))))))
      (llm-ert--send real (contexture-ert--print message))
      '(hang))))

(provide 'contexture-ert-handler)
;;; contexture-ert-handler.el ends here
