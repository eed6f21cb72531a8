;;; contexture-ert-model.el --- Models written in Lisp  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model that says what a test has it say.  It listens on the loopback
;; interface and speaks the interfaces of OpenAI and Anthropic, so that
;; Contexture's server can ask it, as well as gptel, llm and others:
;;
;;     (contexture-ert-with-model
;;         '("Yes."
;;           (("Let me " "see.") (call "read_file" (:path "a.el")))
;;           (error rate-limited "too many requests"))
;;       (my-ask "Is it?"))
;;
;; contexture-ert-api.el has the two interfaces.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'contexture-ert-api)
(require 'contexture-ert-exchange)
(require 'contexture-ert-http)
(require 'contexture-ert-wait)

(defvar contexture--connection)
(defvar contexture-providers)
(declare-function contexture-provider--tell-all "contexture-provider" (connection))
(declare-function contexture-running-p "contexture-rpc" ())

(cl-defstruct (contexture-ert--model (:constructor contexture-ert--make-model)
                                     (:copier nil))
  "A model of a test.
ANSWERS are those to come, or a function; SHOWN is what it was asked, the
newest first; REFUSED is the pair of the last request that it refused
and its error; PROBLEM says that the answers ran out, or is nil."
  listener answers shown refused problem)

(defvar contexture-ert--model nil
  "Model of the test that runs, or nil.")

(defvar contexture-ert--providers nil
  "Value of `contexture-providers' in tests.")

(defmacro contexture-ert-with-model (answers &rest body)
  "Run BODY with a model that says ANSWERS; return what it was shown.
Fail if the model is asked more often than there are ANSWERS.

ANSWERS is a list of answers, or a function that makes all of them.  An
answer is a string, a list of pieces, or a function that is called with
the request, as in `contexture-ert-shown', and returns one of these.  A
piece is one of

  \"TEXT\"                       text, which is streamed
  (thought TEXT)               what the model thinks
  (call NAME ARGUMENTS [ID])   a call of a tool; ARGUMENTS is a property
                               list, or a string as it stands
  (usage :input N :output N :cached N)
                               the tokens that the model counted
  (stop REASON)                a reason such as length for which it ends
  (error KIND TEXT)            an error; KIND is a number of HTTP,
                               authentication, rate-limited, unavailable,
                               quota-exhausted, context-too-long or bad-request
  (step NAME)                  wait until `contexture-ert-go-on'
  cut                          break off
  hang                         say nothing more, and never end

Whoever asks the same again after an error that may pass, such as
rate-limited or 500, is refused again: clients ask so by themselves.

Within BODY, Contexture's server has this model as a provider, as its
default.  For other packages, `contexture-ert-model-host' has the host
and port, and `contexture-ert-model-url' the base of the address."
  (declare (indent 1) (debug (form body)))
  `(contexture-ert--call-with-model ,answers (lambda () ,@body)))

(defun contexture-ert--call-with-model (answers function)
  "Call FUNCTION with a model that says ANSWERS; return what it was shown."
  (let* ((model (contexture-ert--make-model :answers answers))
         (contexture-ert--model model)
         (contexture-ert--steps nil)
         (process-environment (append '("no_proxy=127.0.0.1" "NO_PROXY=127.0.0.1")
                                      process-environment))
         (contexture-ert--providers (list (contexture-ert--listen model)))
         (contexture-providers contexture-ert--providers))
    (unwind-protect
        (progn
          (when (and (boundp 'contexture--connection) (contexture-running-p))
            (contexture-provider--tell-all contexture--connection))
          (contexture-ert--explaining
           (lambda () (contexture-ert--model-explanation model)) function))
      (contexture-ert--hang-up model))
    (when (contexture-ert--model-problem model)
      (ert-fail (contexture-ert--model-problem model)))
    (contexture-ert-shown model)))

(defun contexture-ert--listen (model)
  "Have MODEL listen; return its entry for `contexture-providers'."
  (let ((listener (contexture-ert--http-listen
                   (apply-partially #'contexture-ert--asked model))))
    (setf (contexture-ert--model-listener model) listener)
    (list "model" :kind 'openai :model "model" :default t
          :base-url (concat (contexture-ert-model-url model) "/v1"))))

(defun contexture-ert--hang-up (model)
  "End MODEL with all of its connections."
  (let ((name (process-name (contexture-ert--model-listener model))))
    (dolist (process (process-list))
      (when (string-prefix-p name (process-name process))
        (delete-process process)))))

(defun contexture-ert-model-host (&optional model)
  "Return the host and port at which MODEL, or that of the test, listens."
  (format "127.0.0.1:%d"
          (process-contact (contexture-ert--model-listener
                            (or model contexture-ert--model
                                (error "There is no model in this test")))
                           :service)))

(defun contexture-ert-model-url (&optional model)
  "Return the base address of MODEL, or of that of the test, without a path.
Its interface like OpenAI's is below \"/v1\", as is that like Anthropic's."
  (concat "http://" (contexture-ert-model-host model)))

(defun contexture-ert-shown (&optional model)
  "Return what MODEL, or that of the test, was shown, in order.
Each request is a property list of :prompt, the last text; :system;
:messages, each with :role, :content, :calls and :call-id; :tools, their
names; :model; :stream; :api, `openai' or `anthropic'; and :body, the
whole request as it came."
  (reverse (contexture-ert--model-shown (or model contexture-ert--model))))

(defun contexture-ert--model-explanation (model)
  "Return as text what MODEL was shown, for a test that failed."
  (contexture-ert--paragraph
   "The model was shown"
   (mapcar (lambda (shown)
             (format "%S" (contexture-ert--plist-without shown :body)))
           (contexture-ert-shown model))))

;;;; Answering

(defun contexture-ert--asked (model request)
  "Have MODEL answer the HTTP REQUEST."
  (let ((process (plist-get request :process))
        (api (contexture-ert--api-of (plist-get request :path))))
    (cond (api (contexture-ert--answer-chat model process api request))
          ((string-suffix-p "/models" (plist-get request :path))
           (contexture-ert--http-answer
            process 200 "{\"object\": \"list\", \"data\": [{\"id\": \"model\"}]}"))
          (t (contexture-ert--http-answer process 404 "{\"error\": \"no such path\"}")))))

(defun contexture-ert--answer-chat (model process api request)
  "Have MODEL answer PROCESS, which sent REQUEST through the interface API."
  (let* ((body (contexture-ert--read-json (plist-get request :body)))
         (refused (contexture-ert--model-refused model))
         (shown (contexture-ert--shown-request api body)))
    (if (equal (car refused) (plist-get request :body))
        (contexture-ert--refuse process (cdr refused))
      (push shown (contexture-ert--model-shown model))
      (let ((pieces (contexture-ert--pieces
                     (contexture-ert--next-answer model shown))))
        (setf (contexture-ert--model-refused model)
              (and (contexture-ert--may-pass-p (car pieces))
                   (cons (plist-get request :body) (car pieces))))
        (contexture-ert--play
         (contexture-ert--make-turn
          :process process :api api :pieces pieces
          :name (or (plist-get shown :model) "model")
          :stream (plist-get shown :stream)))))))

(defun contexture-ert--next-answer (model shown)
  "Return the next answer of MODEL to the request SHOWN."
  (let* ((answers (contexture-ert--model-answers model))
         (answer (cond ((functionp answers) answers)
                       (answers (pop (contexture-ert--model-answers model)))
                       (t (contexture-ert--run-out model shown)))))
    (condition-case problem
        (if (functionp answer) (funcall answer shown) answer)
      ((error ert-test-failed)
       (setf (contexture-ert--model-problem model)
             (list 'model-failed problem :shown (plist-get shown :prompt)))
       (list 'error 500 (format "the model's function failed: %S" problem))))))

(defun contexture-ert--run-out (model shown)
  "Note that MODEL has no answer to the request SHOWN; return an error."
  (setf (contexture-ert--model-problem model)
        (list 'no-answer-left :shown (plist-get shown :prompt)
              :after (1- (length (contexture-ert--model-shown model)))))
  '(error 400 "the test's model has no answer left"))

(defun contexture-ert--pieces (answer)
  "Return ANSWER as a flat list of pieces."
  (cond ((or (stringp answer) (symbolp answer)) (and answer (list answer)))
        ((and (symbolp (car answer)) (not (memq (car answer) '(cut hang))))
         (list answer))
        (t (cl-mapcan #'contexture-ert--pieces answer))))

(defun contexture-ert--play (turn)
  "Say the pieces of TURN, until it ends or comes to a step."
  (let (piece)
    (while (setq piece (pop (contexture-ert--turn-pieces turn)))
      (pcase piece
        (`(step ,name)
         (contexture-ert--flush turn)
         (let ((rest (contexture-ert--turn-pieces turn)))
           (setf (contexture-ert--turn-pieces turn) nil
                 (contexture-ert--turn-ending turn) 'waits)
           (contexture-ert--stand-at
            name (lambda ()
                   (setf (contexture-ert--turn-pieces turn) rest
                         (contexture-ert--turn-ending turn) nil)
                   (contexture-ert--play turn)))))
        ((or 'cut 'hang)
         (contexture-ert--flush turn)
         (setf (contexture-ert--turn-pieces turn) nil
               (contexture-ert--turn-ending turn) piece))
        (`(error . ,_)
         (setf (contexture-ert--turn-pieces turn) nil
               (contexture-ert--turn-ending turn) 'error)
         (contexture-ert--fail turn piece))
        (_ (contexture-ert--say-piece turn piece))))
    (pcase (contexture-ert--turn-ending turn)
      ('cut (delete-process (contexture-ert--turn-process turn)))
      ('nil (contexture-ert--finish turn)))))

(provide 'contexture-ert-model)
;;; contexture-ert-model.el ends here
