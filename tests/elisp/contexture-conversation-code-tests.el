;;; contexture-conversation-code-tests.el --- Tests of asking about code  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Asking from buffers with code, and using the code in answers.

;;; Code:

(require 'ediff)
(require 'contexture-conversation-test-helper)
(require 'contexture-conversations)

(defmacro contexture-conversation-code-tests--with (answers &rest body)
  "Run BODY in a buffer of Lisp with a model that says ANSWERS.
SESSION is the buffer of the conversation, and point is in the definition."
  (declare (indent 1) (debug t))
  `(contexture-conversation-test-with ,answers
     (let ((session (current-buffer)) (contexture-conversation-code-tests--seen nil))
       (ignore session)
       (contexture-test-visiting
           (contexture-test-file "a.el" ";; top" "" "(defun f (x)" "  (car x))" "" ";; end")
         (goto-char (point-min))
         (search-forward "(car")
         ,@body))))

(defvar contexture-conversation-code-tests--seen nil
  "The question that was looked at last.")

(defun contexture-conversation-code-tests--asked ()
  "Wait until something was asked and answered, and return what it was."
  (llm-ert-wait-for (buffer-live-p (car contexture-conversation--recent)))
  (with-current-buffer (car contexture-conversation--recent)
    (llm-ert-wait-for (not (memq (contexture-conversation--last :user)
                                        (list nil contexture-conversation-code-tests--seen))))
    (contexture-conversation-test-wait)
    (setq contexture-conversation-code-tests--seen (contexture-conversation--last :user))
    (contexture-conversation--message-text contexture-conversation-code-tests--seen)))

(defun contexture-conversation-code-tests--proposed ()
  "Wait for a change of this buffer that is ready; return it."
  (let (review)
    (llm-ert-wait-for
        (setq review (cl-find-if (lambda (it)
                                   (and (eq (contexture-review--state it) 'ready)
                                        (eq (contexture-review--buffer it) (current-buffer))))
                                 contexture-review--all)))
    review))

(defun contexture-conversation-code-tests--apply (session)
  "Propose the last code of SESSION at its place."
  (save-window-excursion
    (with-current-buffer session
      (goto-char (point-max))
      (contexture-conversation-apply))))

(defconst contexture-conversation-code-tests--cdr "Sure:\n```elisp\n(defun f (x)\n  (cdr x))\n```\n"
  "An answer with other code.")

;;;; Asking

(ert-deftest contexture-conversation-code-of-odd-lines-is-drawn-in-short-steps ()
  "Modes look at some lines again for each of their characters."
  (dolist (language '("perl" "ruby" "sh" "c++"))
    (dolist (text '("/*" "//" "/" "<<A"))
      (with-temp-buffer
        (let ((state (contexture-markdown--begin nil))
              (done nil))
          (contexture-markdown--insert-broken
           state (concat "```" language "\n"
                         (substring (apply #'concat (make-list 6000 text)) 0 6000) "\n```\n"))
          (while (not done)
            (let ((begun (float-time (get-internal-run-time))))
              (setq done (contexture-markdown--draw-lines state (point-max)
                                                          (+ (float-time) 0.01)))
              (should (< (- (float-time (get-internal-run-time)) begun) 0.8)))))))))

(ert-deftest contexture-conversation-code-explains-the-definition-at-point ()
  (contexture-conversation-code-tests--with '(("It takes the first."))
    (save-current-buffer (contexture-explain-code))
    (let ((asked (contexture-conversation-code-tests--asked)))
      (should (string-prefix-p "Explain the code below" asked))
      (should (string-search "a.el:3-4:\n```elisp\n(defun f (x)\n  (car x))\n```" asked)))
    (should (get-buffer-window session))))

(ert-deftest contexture-conversation-code-names-a-conversation-by-what-is-asked ()
  (contexture-conversation-code-tests--with '(("A") ("B") ("C") ("D"))
    (pcase-dolist (`(,name . ,ask)
                   `(("\\`Explain .*a\\.el:3-4\\'" . ,#'contexture-explain-code)
                     ("\\`Why car\\?\\'" . ,(lambda () (contexture-explain-code "Why car?")))
                     ("\\`Is it slow\\?\\'" . ,(lambda () (contexture-send-region "Is it slow?")))
                     ("\\`use cdr\\'" . ,(lambda () (contexture-rewrite "use cdr")))))
      (let ((talk (save-current-buffer
                    (contexture-conversation-test-open
                     (plist-get (contexture-request 'open-session) :session))
                    (current-buffer))))
        (setq contexture-conversation-code-tests--seen nil)
        (save-current-buffer (funcall ask))
        (contexture-conversation-code-tests--asked)
        (with-current-buffer talk
          (llm-ert-wait-for
              (string-match-p name (plist-get contexture-conversation--session :session))))))))

(ert-deftest contexture-conversation-code-explains-with-a-question ()
  (contexture-conversation-code-tests--with '(("Because."))
    (save-current-buffer (contexture-explain-code "Why car?"))
    (should (string-search "The question is: Why car?"
                           (contexture-conversation-code-tests--asked)))))

(ert-deftest contexture-conversation-code-takes-the-region-first ()
  (contexture-conversation-code-tests--with '(("Code."))
    (transient-mark-mode)
    (goto-char (point-min))
    (push-mark (line-end-position) t t)
    (save-current-buffer (contexture-review-code))
    (let ((asked (contexture-conversation-code-tests--asked)))
      (should (string-prefix-p "Review the code below" asked))
      (should (string-search "```elisp\n    1 ;; top\n```" asked)))))

(ert-deftest contexture-conversation-code-documents-and-tests ()
  (contexture-conversation-code-tests--with '(("Doc.") ("Tests."))
    (save-current-buffer (contexture-document-defun))
    (should (string-prefix-p "Write the documentation" (contexture-conversation-code-tests--asked)))
    (save-current-buffer (contexture-write-tests))
    (should (string-search "framework that is usual in elisp"
                           (contexture-conversation-code-tests--asked)))))

(ert-deftest contexture-conversation-code-fixes-an-error ()
  (contexture-conversation-code-tests--with '(("Use cadr."))
    (contexture-fix-error "Wrong type argument: listp, 1")
    (let ((asked (contexture-conversation-code-tests--asked)))
      (should (string-search "Wrong type argument: listp, 1" asked))
      (should (string-search "(car x)" asked)))))

(ert-deftest contexture-conversation-code-asks-what-is-wrong ()
  (contexture-conversation-code-tests--with '(("Use cadr."))
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "It fails")))
      (contexture-fix-error nil))
    (should (string-search "It fails" (contexture-conversation-code-tests--asked)))))

(ert-deftest contexture-conversation-code-fixes-where-a-compilation-leads ()
  (contexture-conversation-code-tests--with '(("Use cadr."))
    (let ((directory default-directory))
      (with-temp-buffer
        (setq default-directory directory)
        (insert "make\na.el:4:3: error: no such function\n")
        (compilation-mode)
        (let ((inhibit-read-only t)) (compilation--ensure-parse (point-max)))
        (goto-char (point-min))
        (forward-line 1)
        (contexture-fix-error nil)))
    (let ((asked (contexture-conversation-code-tests--asked)))
      (should (string-search "a.el:4:3: error: no such function" asked))
      (should (string-search "(defun f (x)" asked)))))

(ert-deftest contexture-conversation-code-needs-code ()
  (contexture-conversation-code-tests--with nil
    (goto-char (point-max))
    (erase-buffer)
    (contexture-test-user-error "Mark a region" (contexture-explain-code))
    (contexture-test-user-error "Say how" (contexture-rewrite " "))))

(ert-deftest contexture-conversation-code-sends-a-question-about-the-region ()
  (contexture-conversation-code-tests--with '(("Yes."))
    (save-current-buffer (contexture-send-region "Is it fast?"))
    (should (string-prefix-p "Is it fast?\n\nFrom " (contexture-conversation-code-tests--asked)))))

(ert-deftest contexture-conversation-code-puts-the-region-behind-the-prompt ()
  (contexture-conversation-code-tests--with nil
    (save-current-buffer (contexture-send-region ""))
    (with-current-buffer session
      (should (string-match-p "\\`From .*\n```elisp\n(defun f (x)\n  (car x))\n```\n\n\\'"
                              (contexture-conversation--text))))
    (llm-ert-should-not-called 'chat)))

(ert-deftest contexture-conversation-code-fences-cannot-be-closed-from-inside ()
  (should (equal (contexture-conversation-code--fence "a ```` b ``` c") "`````"))
  (should (equal (contexture-conversation-code--fence "a") "```")))

(ert-deftest contexture-conversation-code-waits-for-no-answer-that-comes ()
  (contexture-conversation-code-tests--with '(("One" hang))
    (save-current-buffer (contexture-explain-code))
    (llm-ert-wait-for (with-current-buffer session (contexture-conversation--busy-p)))
    (contexture-test-user-error "still being answered"
      (save-current-buffer (contexture-explain-code nil "talk")))))

(ert-deftest contexture-conversation-code-inserts-the-last-response ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (save-current-buffer (contexture-explain-code))
    (contexture-conversation-code-tests--asked)
    (goto-char (point-max))
    (contexture-insert-last-response)
    (should (string-suffix-p contexture-conversation-code-tests--cdr (buffer-string)))
    (contexture-insert-last-response t)
    (should (string-suffix-p "```\n(defun f (x)\n  (cdr x))\n" (buffer-string)))))

(ert-deftest contexture-conversation-code-without-a-session-inserts-nothing ()
  (with-temp-buffer
    (let ((contexture-conversation--recent nil))
      (contexture-test-user-error "No conversation .* has a buffer" (contexture-insert-last-response)))))

;;;; Conversations of projects

(defmacro contexture-conversation-code-tests--in-projects (answers &rest body)
  "Run BODY with a model that says ANSWERS; ONE and TWO are files of projects.
Both are called a.el, and the conversation \"talk\", without a project, is the
one that was used last."
  (declare (indent 1) (debug t))
  `(contexture-conversation-test-with ,answers
     (let ((contexture-add-to 'project)
           (contexture-conversation-code-tests--seen nil)
           (one (contexture-conversation-test-project "one"))
           (two (contexture-conversation-test-project "two")))
       ,@body)))

(defmacro contexture-conversation-code-tests--at (file &rest body)
  "Run BODY in the definition of FILE."
  (declare (indent 1) (debug t))
  `(contexture-test-visiting ,file
     (goto-char (point-min))
     ,@body))

(defun contexture-conversation-code-tests--talk ()
  "Return the names of the folder of the project and the conversation used last."
  (with-current-buffer (car contexture-conversation--recent)
    (let ((project (plist-get contexture-conversation--session :project)))
      (list (and project (file-name-nondirectory (directory-file-name project)))
            (plist-get contexture-conversation--session :session)))))

(defun contexture-conversation-code-tests--ask-in (file ask &rest arguments)
  "Call ASK with ARGUMENTS in the definition of FILE.
Return the folder of the project and the name of the conversation that was
asked, and the question."
  (contexture-conversation-code-tests--at file
    (apply ask arguments)
    (let ((asked (contexture-conversation-code-tests--asked)))
      (append (contexture-conversation-code-tests--talk) (list asked)))))

(ert-deftest contexture-conversation-code-begins-a-new-conversation ()
  (contexture-conversation-code-tests--in-projects (make-list 9 '("A"))
    (contexture-conversation-code-tests--ask-in one #'contexture-send-region "Is it slow?")
    (pcase-dolist (`(,_ ,name . ,ask)
                   `((W "use cdr" ,#'contexture-rewrite "use cdr")
                     (E "Explain a.el:1-2" ,#'contexture-explain-code)
                     (O "Document a.el:1-2" ,#'contexture-document-defun)
                     (V "Review a.el:1-2" ,#'contexture-review-code)
                     (F "Fix error a.el:1-2" ,#'contexture-fix-error "It fails")
                     (T "Write tests a.el:1-2" ,#'contexture-write-tests)))
      (should (equal (cl-subseq (apply #'contexture-conversation-code-tests--ask-in one ask) 0 2)
                     (list "one" name)))
      (with-current-buffer (car contexture-conversation--recent)
        (should (= 1 (cl-count :user (contexture-conversation-test-log) :key #'car)))))
    ;; Unless a conversation is named, or the option says so.
    (let ((contexture-conversation-continue t))
      (contexture-conversation-code-tests--ask-in one #'contexture-review-code)
      (with-current-buffer (car contexture-conversation--recent)
        (should (= 2 (cl-count :user (contexture-conversation-test-log) :key #'car)))))
    (contexture-conversation-code-tests--ask-in one #'contexture-review-code "Is it slow?")
    (with-current-buffer (car contexture-conversation--recent)
      (should (equal "Is it slow?" (plist-get contexture-conversation--session :session)))
      (should (= 2 (cl-count :user (contexture-conversation-test-log) :key #'car))))))

(ert-deftest contexture-conversation-code-asks-in-the-conversation-of-the-project ()
  (let ((contexture-conversation-continue t))
    (contexture-conversation-code-tests--in-projects '(("A") ("B") ("C") ("D") ("E") ("F"))
      (should (equal (car (contexture-conversation-code-tests--ask-in
                           one #'contexture-send-region "Is it slow?"))
                     "one"))
      (should (equal (car (contexture-conversation-code-tests--ask-in
                           two #'contexture-send-region "Is it fast?"))
                     "two"))
      ;; Those of "one", though "two" was used last, and the other way round.
      (dolist (ask `((,#'contexture-rewrite "use cdr") (,#'contexture-explain-code)))
        (should (equal (cl-subseq (apply #'contexture-conversation-code-tests--ask-in one ask) 0 2)
                       '("one" "Is it slow?")))
        (should (equal (cl-subseq (apply #'contexture-conversation-code-tests--ask-in two ask) 0 2)
                       '("two" "Is it fast?"))))
      (let ((asked (lambda (name)
                     (cl-loop for message in (contexture-request 'get-messages
                                                                 (list :session name))
                              when (eq (plist-get message :role) :user)
                              collect (plist-get message :content)))))
        (should (= (length (funcall asked "Is it slow?")) 3))
        (should (cl-notany (lambda (text) (string-search "defun two" text))
                           (funcall asked "Is it slow?")))
        (should-not (funcall asked "talk"))))))

(ert-deftest contexture-conversation-code-sends-the-items-of-the-project ()
  (contexture-conversation-code-tests--in-projects '(("A") ("B"))
    (dolist (file (list one two))
      (contexture-conversation-code-tests--at file
        (contexture-test-message "^Added " (contexture-add-defun))))
    (dolist (file (list one two))
      (contexture-conversation-code-tests--ask-in file #'contexture-send-region "What?")
      (with-current-buffer (car contexture-conversation--recent)
        (should (equal (mapcar (lambda (it)
                                 (plist-get (plist-get it :metadata) :filename))
                               (contexture-request
                                'list-items (contexture--context-params contexture-context)))
                       (list file)))))))

(ert-deftest contexture-conversation-opens-the-conversation-of-the-project ()
  (contexture-conversation-code-tests--in-projects nil
    (let ((talk (current-buffer))
          (open (lambda ()
                  (save-window-excursion
                    (contexture-conversation)
                    (car (contexture-conversation-code-tests--talk)))))
          conversation)
      (contexture-conversation-code-tests--at one
        (should (equal (funcall open) "one"))
        (setq conversation (car contexture-conversation--recent)))
      (contexture-conversation-code-tests--at two
        (should (equal (funcall open) "two")))
      (contexture-conversation-code-tests--at one
        (should (equal (save-window-excursion (contexture-conversation) (current-buffer))
                       conversation)))
      ;; A conversation is its own, whatever was used last.
      (with-current-buffer talk
        (should (eq (save-window-excursion (contexture-conversation) (current-buffer)) talk)))
      ;; A buffer without a project.
      (with-temp-buffer
        (setq default-directory llm-ert-directory)
        (should (eq (save-window-excursion (contexture-conversation) (current-buffer)) talk))))))

(ert-deftest contexture-conversation-finds-the-conversation-of-the-project-on-the-server ()
  (contexture-conversation-code-tests--in-projects nil
    (dolist (file (list one two))
      (contexture-request 'open-session
                          (list :name (concat "of " file) ; with no slash at the end
                                :project (directory-file-name (file-name-directory file)))))
    (kill-buffer "*contexture: talk*")
    (contexture-conversation-code-tests--at one
      (contexture-conversation)
      (should (equal (contexture-conversation-code-tests--talk) (list "one" (concat "of " one)))))
    (with-temp-buffer
      (setq default-directory llm-ert-directory)
      (contexture-conversation)
      (should (equal (contexture-conversation-code-tests--talk) '(nil "talk"))))
    ;; The root in Emacs ends in a slash.
    (contexture-conversation-code-tests--at one
      (contexture-conversation)
      (should (equal (contexture-conversation-code-tests--talk) (list "one" (concat "of " one)))))
    (should (= (length (contexture-request 'list-sessions)) 3))))

(ert-deftest contexture-conversation-code-counts-what-goes-along-as-it-is-now ()
  (contexture-conversation-code-tests--in-projects (make-list 3 '("A"))
    (contexture-conversation-code-tests--at one
      (contexture-add-buffer)
      (pcase-dolist (`(,ask . ,arguments) `((,#'contexture-explain-code)
                                            (,#'contexture-rewrite "use cdr")
                                            (,#'contexture-send-region "Slow?")))
        ;; The server does not know this yet.
        (goto-char (point-max))
        (insert (format ";; %s is a line more.\n" ask))
        (goto-char (point-min))
        (let ((said (save-window-excursion
                      (save-current-buffer
                        (contexture-test-message "^Asked in conversation .*, with 1 item, "
                          (apply ask arguments)
                          (contexture-conversation-code-tests--asked)))))
              (items (contexture-request 'list-items
                                         (contexture--context-params (contexture-current-context)))))
          (should (string-search (format "with 1 item, %d tokens of project one"
                                         (contexture--tokens-to-send items))
                                 said)))))))

(ert-deftest contexture-conversation-says-when-a-conversation-is-of-another-project ()
  (contexture-conversation-code-tests--in-projects '(("A") ("B") ("C"))
    (should (string-prefix-p "Slow?\n\nFrom a.el:1-2:\n"
                             (nth 2 (contexture-conversation-code-tests--ask-in
                                     one #'contexture-send-region "Slow?"))))
    (contexture-test-message "^Asked in conversation Slow\\?, which belongs to project one, with no items and 2 messages before$"
      (let ((asked (contexture-conversation-code-tests--ask-in
                    two #'contexture-send-region "Fast?" "Slow?")))
        (should (equal (car asked) "one"))
        (should (string-prefix-p (format "Fast?\n\nFrom %s:1-2:\n" (abbreviate-file-name two))
                                 (nth 2 asked)))))
    (contexture-test-message "^Asked in conversation talk, which belongs to no project, with no items"
      (contexture-conversation-code-tests--ask-in two #'contexture-rewrite "use cdr" "talk"))
    (contexture-conversation-code-tests--at two
      (contexture-test-message "^This is conversation Slow\\?, which belongs to project one$"
        (contexture-conversation "Slow?")))))

(ert-deftest contexture-conversation-inserts-the-last-response-of-the-project ()
  (contexture-conversation-code-tests--in-projects '(("From one.") ("From two."))
    (contexture-conversation-code-tests--at one
      (contexture-test-user-error "No conversation of project one has a buffer"
        (contexture-insert-last-response)))
    (contexture-conversation-code-tests--ask-in one #'contexture-send-region "Slow?")
    (contexture-conversation-code-tests--ask-in two #'contexture-send-region "Fast?")
    (contexture-conversation-code-tests--at one
      (contexture-insert-last-response)
      (should (looking-back "From one\\." (point-min))))))

(ert-deftest contexture-conversation-names-its-project-above-the-prompt ()
  (contexture-conversation-code-tests--in-projects nil
    (should-not (string-search "project" (contexture-conversation-test-context)))
    (contexture-conversation-code-tests--at one
      (contexture-conversation-test-open "of one")
      (should (equal (contexture-conversation-test-context)
                     "Context: project one  empty; /add adds to it, @ to one question"))
      (setq contexture-context
            (list "*shared*" (concat "project:/" (make-string 40 ?p) "/")
                  (plist-get contexture-conversation--session :manager))
            contexture-conversation--items
            (cl-loop repeat 40 collect
                     (list :id "ctx-1" :tokens 12345 :state :stale
                           :metadata (list :symbol (make-string 60 ?s)))))
      (contexture-conversation--draw-context)
      (should (equal (contexture-conversation-test-context)
                     "Context: project ppppppppppppppppppp…  40 items, 493800 tokens"))
      (setq contexture-conversation--items
            (list (list :id "ctx-1" :tokens 45 :metadata (list :symbol (make-string 60 ?s)))))
      (contexture-conversation--draw-context)
      (should (string-match-p "…  \\[s+\\.\\.\\. 45\\]  1 item, 45 tokens\\'"
                              (contexture-conversation-test-context)))
      (should (< (string-width (contexture-conversation-test-context)) 80)))))

(ert-deftest contexture-conversation-names-projects-where-a-conversation-is-chosen ()
  (contexture-conversation-code-tests--in-projects nil
    (dolist (file (list one two))
      (contexture-request 'open-session
                          (list :name (concat "in " (file-name-nondirectory
                                                     (directory-file-name
                                                      (file-name-directory file))))
                                :project (file-name-directory file))))
    (dolist (read (list #'contexture-conversation--read-session
                        (lambda () (contexture-conversations--read "Conversation" t))))
      (let (note)
        (cl-letf (((symbol-function 'completing-read)
                   (lambda (_ table &rest _)
                     (setq note (completion-metadata-get (completion-metadata "" table nil)
                                                         'annotation-function))
                     "talk")))
          (funcall read))
        (should (string-match-p "project one, 0 messages" (funcall note "in one")))
        (should (string-match-p "project two, 0 messages" (funcall note "in two")))
        (should (string-match-p "\\` *0 messages" (funcall note "talk")))))))

(ert-deftest contexture-conversation-reads-the-name-of-a-conversation ()
  (contexture-conversation-code-tests--in-projects nil
    (contexture-request 'open-session (list :name "in one" :project (file-name-directory one)))
    (contexture-request 'add-message '(:session "talk" :content "The last"))
    (let ((read (lambda (keys)
                  (let (name (executing-kbd-macro t) (unread-command-events
                              (listify-key-sequence (kbd keys))))
                    (setq name (contexture-conversation--read-session))
                    name))))
      (contexture-conversation-code-tests--at one
        (should (equal (funcall read "RET") "in one"))
        (should (equal (funcall read "a SPC new SPC one RET") "a new one")))
      (should (equal (funcall read "RET") "talk")))))

;;;; Using code

(ert-deftest contexture-conversation-block-copies-and-inserts ()
  (contexture-conversation-test-with '(("One:\n```\na\n```\ntwo:\n```\nb\n```\n"))
    (contexture-test-user-error "No answer in this buffer has a block of code" (contexture-conversation-copy-block))
    (contexture-conversation-test-send "Q")
    (contexture-conversation-copy-block)
    (should (equal (current-kill 0) "b\n"))
    (goto-char (point-min))
    (contexture-conversation-next-block)
    (contexture-conversation-copy-block)
    (should (equal (current-kill 0) "a\n"))
    (contexture-conversation-next-block)
    (should (looking-at-p "b"))
    (contexture-conversation-previous-block)
    (should (looking-at-p "a"))
    (contexture-test-user-error "no further block of code" (contexture-conversation-previous-block))
    (with-temp-buffer
      (let ((target (current-buffer)))
        (with-current-buffer (car contexture-conversation--recent)
          (contexture-conversation-insert-block target))
        (should (equal (buffer-string) "a\n"))))))

(ert-deftest contexture-conversation-block-before-one-is-not-its-own-start ()
  (contexture-conversation-test-with '(("One:\n```\na\n```\ntwo:\n```\nb\nc\n```\n"))
    (contexture-conversation-test-send "Q")
    (contexture-conversation-test-goto "c\n")
    (contexture-conversation-previous-block)
    (should (looking-at-p "a\n"))))

(ert-deftest contexture-conversation-blocks-are-found-before-they-are-drawn ()
  (contexture-conversation-test-with nil
    (contexture-conversation--add-message :user "Q" nil)
    (contexture-conversation--add-message :assistant "One:\n```\na\n```\n" "Model")
    (goto-char (point-min))
    (contexture-conversation-next-block)
    (should (looking-at-p "a\n"))))

(ert-deftest contexture-conversation-block-is-never-that-of-the-question ()
  (contexture-conversation-test-with '(("Only words.") ("So:\n```\nanswer\n```\n") ("Yes."))
    (contexture-conversation-test-send "What of this?\n```\nquestion\n```")
    (contexture-test-user-error "No answer in this buffer has a block of code" (contexture-conversation-copy-block))
    (with-temp-buffer
      (contexture-test-user-error "No answer in the conversation has a block of code" (contexture-insert-last-response t)))
    (contexture-conversation-test-send "And?")
    (contexture-conversation-test-send "Rather this?\n```\nquestion\n```")
    (contexture-conversation-copy-block)
    (should (equal (current-kill 0) "answer\n"))
    (with-temp-buffer
      (contexture-insert-last-response t)
      (should (equal (buffer-string) "answer\n")))))

;;;; Changes at their place

(defconst contexture-conversation-code-tests--changed
  ";; top\n\n(defun f (x)\n  (cdr x))\n\n;; end\n"
  "The text of the file once its change is accepted.")

(ert-deftest contexture-rewrite-is-accepted-and-undone ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (goto-char (point-max))
    (insert ";; not saved\n")
    (undo-boundary)
    (search-backward "(car")
    (let ((before (buffer-string)))
      (contexture-rewrite "use cdr")
      (should (string-prefix-p "Rewrite the code below: use cdr.\n"
                               (contexture-conversation-code-tests--asked)))
      (let* ((review (contexture-conversation-code-tests--proposed))
             (part (car (contexture-review--parts review))))
        (should (equal (buffer-string) before))
        (should (equal (overlay-get part 'contexture-old) "  (car x))\n"))
        (should (equal (overlay-get part 'after-string) "  (cdr x))\n"))
        (should (string-prefix-p "1 change proposed"
                                 (overlay-get (contexture-review--place review)
                                              'before-string))))
      (contexture-review-accept)
      (should (equal (buffer-string)
                     (concat contexture-conversation-code-tests--changed ";; not saved\n")))
      (should (buffer-modified-p))
      (should-not (overlays-in (point-min) (point-max)))
      (setq last-command 'other)
      (undo)
      (should (equal (buffer-string) before)))))

(ert-deftest contexture-rewrite-has-its-keys-at-the-end-of-a-marked-region ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (transient-mark-mode)
    (search-backward "(defun")
    (push-mark nil t t)
    (forward-line 2)
    (contexture-test-message "has been proposed; .*contexture-review-next goes there"
      (contexture-rewrite "use cdr")
      (contexture-conversation-code-tests--proposed))
    (should (looking-at-p "$"))
    (should (eq (key-binding (kbd "C-c C-c")) #'contexture-review-accept))
    (should (eq (get-pos-property (point) 'keymap) contexture-review-map))
    (should-not (get-pos-property (1+ (point)) 'keymap))
    (insert "new\n")
    (contexture-review-accept)
    (should-not (overlays-in (point-min) (point-max)))
    (should (equal (buffer-string)
                   (string-replace "x))\n" "x))\nnew\n" contexture-conversation-code-tests--changed)))))

(ert-deftest contexture-rewrite-that-is-rejected-changes-nothing ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (let ((before (buffer-string)))
      (contexture-rewrite "use cdr")
      (contexture-conversation-code-tests--proposed)
      (contexture-review-reject)
      (should (equal (buffer-string) before))
      (should-not (buffer-modified-p))
      (should-not (contexture-review--open))
      (contexture-test-user-error "No change is proposed here"
        (contexture-review-accept)))))

(ert-deftest contexture-rewrite-is-shown-while-it-comes ()
  (contexture-conversation-code-tests--with
      '((("```elisp\n(defun f (y)\n  (ca" (step middle) "r y))\n```\n")))
    (let ((contexture-review--draw-seconds 0))
      (contexture-rewrite "rename x")
      (llm-ert-await-step 'middle)
      (let ((review (car contexture-review--all)))
        (llm-ert-wait-for (contexture-review--parts review))
        (should (equal (mapcar (lambda (part) (overlay-get part 'after-string))
                               (contexture-review--parts review))
                       '("(defun f (y)\n")))
        (contexture-test-user-error "not complete yet" (contexture-review-accept)))
      (llm-ert-go-on 'middle)
      (contexture-conversation-code-tests--proposed)
      (contexture-review-accept)
      (should (string-search "(defun f (y)\n  (car y))\n\n;; end" (buffer-string))))))

(ert-deftest contexture-rewrite-is-stopped-while-it-comes ()
  (contexture-conversation-code-tests--with
      '((("```elisp\n(defun f (y)\n  (ca" (step middle) "r y))\n```\n")))
    (contexture-rewrite "rename x")
    (llm-ert-await-step 'middle)
    (contexture-review-reject)
    (with-current-buffer (car contexture-conversation--recent)
      (llm-ert-wait-for (not contexture-conversation--turn))
      (should (equal (contexture-conversation--text) "")))
    (should-not (contexture-review--open))))

(ert-deftest contexture-rewrite-goes-part-by-part ()
  (contexture-conversation-code-tests--with
      '(("```elisp\n(defun f (y)\n  (car x)\n  nil)\n```\n"))
    (erase-buffer)
    (insert "(defun f (x)\n  (car x)\n  t)\n")
    (goto-char (point-min))
    (contexture-rewrite "change")
    (let* ((review (contexture-conversation-code-tests--proposed))
           (title (lambda () (overlay-get (contexture-review--place review) 'before-string))))
      (should (= (length (contexture-review--parts review)) 2))
      (should (string-search "C-c C-a/C-d one, C-c C-n next" (funcall title)))
      (should (< (string-width (funcall title)) 80))
      (goto-char (point-min))
      (contexture-review-next)
      (should (looking-at "  t)"))
      (contexture-review-accept-part)
      (should (string-prefix-p "1 change left  C-c C-c accept" (funcall title)))
      (should-not (string-search "C-c C-a/C-d" (funcall title))))
    (should (equal (buffer-string) "(defun f (x)\n  (car x)\n  nil)\n"))
    (contexture-test-message "Accepted 1 change in"
      (contexture-review-reject-part))
    (should (equal (buffer-string) "(defun f (x)\n  (car x)\n  nil)\n"))
    (should-not (contexture-review--open))))

(ert-deftest contexture-rewrite-counts-parts-that-were-accepted-before ()
  (dolist (decide '(contexture-review-accept contexture-review-reject))
    (contexture-conversation-code-tests--with
        '(("```elisp\n(defun f (y)\n  (car x)\n  nil)\n```\n"))
      (erase-buffer)
      (insert "(defun f (x)\n  (car x)\n  t)\n")
      (goto-char (point-min))
      (contexture-rewrite "change")
      (contexture-conversation-code-tests--proposed)
      (goto-char (point-min))
      (let* ((places 0)
             (contexture-review-accepted-functions (list (lambda (_) (cl-incf places)))))
        (contexture-review-accept-part)
        (contexture-test-message
            (if (eq decide 'contexture-review-accept) "Accepted 2 changes" "Accepted 1 change in")
          (funcall decide))
        (should (= places 1))
        (should (string-prefix-p "(defun f (y)" (buffer-string)))))))

(ert-deftest contexture-rewrite-never-overwrites-later-edits ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (contexture-rewrite "use cdr")
    (contexture-conversation-code-tests--proposed)
    (search-backward "(car")
    (insert "(not ")
    (contexture-test-user-error "have edited these lines" (contexture-review-accept))
    (should (string-search "(not (car x))" (buffer-string)))))

(ert-deftest contexture-rewrite-asks-for-several-and-once-more ()
  (contexture-conversation-code-tests--with
      '(("```elisp\n(defun f (x)\n  (cdr x))\n```\n")
        ("```elisp\n(defun g (x)\n  (list x))\n```\n")
        ("```elisp\n(defun f (x)\n  (nth 1 x))\n```\n"))
    (goto-char (point-max))
    (insert "\n(defun g (x)\n  x)\n")
    (goto-char (point-min))
    (search-forward "(car")
    (contexture-rewrite "use cdr")
    (contexture-test-user-error "already been proposed" (contexture-rewrite "again"))
    (goto-char (1- (point-max)))
    (contexture-rewrite "use list")
    (llm-ert-wait-for (= (cl-count 'ready contexture-review--all
                                          :key #'contexture-review--state)
                                2))
    (goto-char (point-min))
    (search-forward "(car")
    (contexture-review-again "no cdr")
    (llm-ert-wait-for (= (cl-count 'ready contexture-review--all
                                          :key #'contexture-review--state)
                                2))
    (contexture-review-accept)
    (contexture-review-next)
    (contexture-review-accept)
    (should (equal (buffer-string)
                   ";; top\n\n(defun f (x)\n  (nth 1 x))\n\n;; end\n\n\
(defun g (x)\n  (list x))\n"))
    (should (string-search "Once more: no cdr.\n"
                           (with-current-buffer (car contexture-conversation--recent)
                             (contexture-conversation--message-text
                              (contexture-conversation--last :user)))))))

(ert-deftest contexture-rewrite-waits-for-its-turn-in-a-conversation ()
  (contexture-conversation-code-tests--with
      '(("```elisp\n(defun f (x)\n  (ca" (step middle) "dr x))\n```\n")
        ("```elisp\n(defun g (x)\n  (list x))\n```\n"))
    (goto-char (point-max))
    (insert "\n(defun g (x)\n  x)\n")
    (goto-char (point-min))
    (search-forward "(car")
    (contexture-rewrite "use cadr" "talk")
    (llm-ert-await-step 'middle)
    (goto-char (1- (point-max)))
    (contexture-rewrite "use list" "talk")
    (should (buffer-local-value 'contexture-conversation-code--waiting session))
    (llm-ert-go-on 'middle)
    (llm-ert-wait-for (= 2 (cl-count 'ready contexture-review--all
                                     :key #'contexture-review--state)))
    (should-not (buffer-local-value 'contexture-conversation-code--waiting session))))

(ert-deftest contexture-rewrite-without-code-shows-the-answer ()
  (contexture-conversation-code-tests--with '(("I would not."))
    (contexture-test-message "The answer has no code"
      (contexture-rewrite "use cdr"))
    (should-not (contexture-review--open))))

(ert-deftest contexture-rewrite-refuses-what-cannot-be-changed ()
  (contexture-conversation-code-tests--with nil
    (let ((indirect (make-indirect-buffer (current-buffer) "indirect" t)))
      (unwind-protect
          (with-current-buffer indirect
            (contexture-test-user-error "ask for the change in a\\.el"
              (contexture-rewrite "use cdr")))
        (kill-buffer indirect)))
    (setq buffer-read-only t)
    (should-error (contexture-rewrite "use cdr") :type 'buffer-read-only)))

(ert-deftest contexture-review-compares-lines-at-every-edge ()
  (dolist (texts '(("" "a\n") ("a" "b") ("a" "a\nb") ("a\nb" "a") ("a\n" "a\nb\n")
                   ("a\nb\nc\n" "c\n") ("a\nb\nc\n" "a\nx\nc\ny\n") ("λ\n< b\n" "λ\n> b\n")
                   ("1,2c3\n" "4d5\n") ("x\n\n\ny" "x\n\ny")))
    (pcase-let ((`(,old ,new) texts))
      (with-temp-buffer
        (insert old)
        (let ((review (contexture-review--begin (point-min) (point-max))))
          (contexture-review--show review new t)
          (goto-char (point-min))
          (contexture-review-accept)
          (should (equal (cons old (buffer-string)) (cons old new))))))))

(ert-deftest contexture-review-takes-a-part-of-a-line ()
  (with-temp-buffer
    (insert "(list one two)\n")
    (contexture-review--show (contexture-review--begin 7 10) "1" t)
    (contexture-review-accept)
    (should (equal (buffer-string) "(list 1 two)\n"))
    (contexture-test-message "already has the proposed text"
      (contexture-review--show (contexture-review--begin 7 8) "1" t))
    (should-not (contexture-review--open))))

(ert-deftest contexture-review-is-accepted-and-undone-in-one-step ()
  (let ((old "(defun f (x)\n  (car x)\n  t)\n")
        (new "(defun f (y)\n  (car x)\n  nil)\n"))
    (save-window-excursion
      (with-temp-buffer
        (switch-to-buffer (current-buffer))
        (insert old)
        (buffer-enable-undo)
        (goto-char (point-min))
        (contexture-review--show (contexture-review--begin (point-min) (point-max)) new t)
        (execute-kbd-macro (kbd "C-c C-c"))
        (should (equal (buffer-string) new))
        (execute-kbd-macro (kbd "C-/"))
        (should (equal (buffer-string) old))
        (execute-kbd-macro (kbd "C-f C-/"))
        (should (equal (buffer-string) new))))))

(defun contexture-conversation-code-tests--propose (new)
  "Propose NEW for the line after point, in this buffer; return the change."
  (let ((review (contexture-review--begin (point) (line-beginning-position 2))))
    (contexture-review--show review new t)
    review))

(defmacro contexture-conversation-code-tests--with-lines (count &rest body)
  "Run BODY in a window with a buffer of COUNT lines."
  (declare (indent 1) (debug t))
  `(save-window-excursion
     (with-temp-buffer
       (switch-to-buffer (current-buffer))
       (dotimes (line ,count) (insert (format "line %d\n" (1+ line))))
       (goto-char (point-min))
       ,@body)))

(ert-deftest contexture-review-has-keys-elsewhere-in-its-buffer ()
  (contexture-conversation-code-tests--with-lines 9
    (forward-line 3)
    (contexture-conversation-code-tests--propose "new\n")
    (dolist (place (list (point-min) (point-max)))
      (goto-char place)
      (pcase-dolist (`(,key . ,command) '(("C-c C-a" . contexture-review-accept-part)
                                          ("C-c C-d" . contexture-review-reject-part)
                                          ("C-c C-n" . contexture-review-next)))
        (should (eq (key-binding (kbd key)) command))))
    ;; What the buffer uses itself stays, also as a prefix.
    (local-set-key (kbd "C-c C-d") (make-sparse-keymap))
    (local-set-key (kbd "C-c C-d d") #'describe-function)
    (should (eq (key-binding (kbd "C-c C-d d")) #'describe-function))
    (execute-kbd-macro (kbd "C-c C-a"))
    (should (string-search "line 3\nnew\nline 5\n" (buffer-string)))
    (should-not (key-binding (kbd "C-c C-a")))))

(ert-deftest contexture-review-says-where-it-is ()
  (contexture-conversation-code-tests--with-lines 900
    (forward-line 399)
    (let ((review (contexture-conversation-code-tests--propose "new\n")))
      (goto-char (point-max))
      (insert "last\n")
      (forward-line -1)
      (set-window-start nil (point))
      (contexture-test-user-error
          "\\`The change is proposed in line 400; C-c C-n goes there\\'"
        (contexture-review-accept-part))
      (contexture-conversation-code-tests--propose "end\n")
      (goto-char (point-min))
      (contexture-review-next)
      (should (= (line-number-at-pos) 400))
      (should (string-search "C-c C-r again, C-c C-n next"
                             (overlay-get (contexture-review--place review) 'before-string)))
      (forward-line -9)
      (contexture-test-user-error
          "\\`2 changes are proposed, in line 400 and line 901; C-c C-n goes there\\'"
        (contexture-review-reject-part))
      (contexture-review-previous)
      (should (= (line-number-at-pos) 901))
      (contexture-review-reject-part)
      (should (string-search "C-c C-r ask again"
                             (overlay-get (contexture-review--place review) 'before-string))))))

;;;; Code of an answer

(ert-deftest contexture-conversation-block-applies-where-the-code-is-by-now ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (save-current-buffer (contexture-document-defun))
    (contexture-conversation-code-tests--asked)
    (goto-char (point-min))
    (insert ";; new\n")
    (contexture-conversation-code-tests--apply session)
    (contexture-review-accept)
    (should (equal (buffer-string)
                   (concat ";; new\n" contexture-conversation-code-tests--changed)))
    (contexture-test-user-error "already has that code"
      (contexture-conversation-code-tests--apply session))))

(ert-deftest contexture-conversation-block-finds-code-in-a-file-opened-again ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (let ((file buffer-file-name))
      (save-current-buffer (contexture-document-defun))
      (contexture-conversation-code-tests--asked)
      (kill-buffer)
      (contexture-conversation-code-tests--apply session)
      (with-current-buffer (find-buffer-visiting file)
        (contexture-review-accept)
        (should (equal (buffer-string) contexture-conversation-code-tests--changed))
        (erase-buffer)
        (set-buffer-modified-p nil)
        (kill-buffer))
      (with-temp-file file (insert "other\n"))
      (contexture-test-user-error "The old code is no longer in"
        (contexture-conversation-code-tests--apply session)))))

(ert-deftest contexture-conversation-block-finds-the-definition-by-its-name ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (let ((file buffer-file-name))
      (with-current-buffer session
        (contexture-conversation-test-send "Q")
        (setq contexture-conversation--items `((:metadata (:filename ,file))))))
    (contexture-conversation-code-tests--apply session)
    (contexture-review-accept)
    (should (equal (buffer-string) contexture-conversation-code-tests--changed))))

(ert-deftest contexture-conversation-block-of-another-definition-goes-to-that ()
  (contexture-conversation-code-tests--with
      '(("Use this:\n```elisp\n(defun g (x)\n  (f x))\n```\n")
        ("Or this:\n```elisp\n(defun h (x)\n  (f x))\n```\n"))
    (goto-char (point-max))
    (insert "\n(defun g (x)\n  x)\n")
    (let ((folder default-directory))
      (with-current-buffer session (setq default-directory folder)))
    (search-backward "(car")
    (save-current-buffer (contexture-explain-code))
    (contexture-conversation-code-tests--asked)
    (contexture-conversation-code-tests--apply session)
    (contexture-review-accept)
    (should (string-suffix-p "(defun f (x)\n  (car x))\n\n;; end\n\n(defun g (x)\n  (f x))\n"
                             (buffer-string)))
    ;; What is nowhere else takes the place of the code that was asked about.
    (goto-char (point-min))
    (search-forward "(car")
    (save-current-buffer (contexture-explain-code nil "talk"))
    (contexture-conversation-code-tests--asked)
    (contexture-conversation-code-tests--apply session)
    (contexture-review-accept)
    (should (string-suffix-p "(defun h (x)\n  (f x))\n\n;; end\n\n(defun g (x)\n  (f x))\n"
                             (buffer-string)))))

(ert-deftest contexture-conversation-block-finds-the-definition-in-the-folder-without-a-project ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (let ((folder default-directory))
      (with-current-buffer session
        (should-not (plist-get contexture-conversation--session :project))
        (contexture-conversation-test-send "Q")
        (let ((default-directory "/nowhere/"))
          (contexture-test-user-error "defines f;" (contexture-conversation-apply)))
        (setq default-directory folder)))
    (contexture-conversation-code-tests--apply session)
    (contexture-review-accept)
    (should (equal (buffer-string) contexture-conversation-code-tests--changed))))

(ert-deftest contexture-conversation-block-does-not-guess-where-code-belongs ()
  (contexture-conversation-test-with (list (list contexture-conversation-code-tests--cdr)
                                           '("```\nhello\n```\n"))
    (contexture-conversation-test-send "Q")
    (contexture-test-user-error "defines f;" (contexture-conversation-apply))
    (contexture-conversation-test-send "Q")
    (contexture-test-user-error "Cannot tell which buffer" (contexture-conversation-apply))))

(ert-deftest contexture-conversation-block-respects-a-read-only-buffer ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (save-current-buffer (contexture-document-defun))
    (contexture-conversation-code-tests--asked)
    (setq buffer-read-only t)
    (should-error (contexture-conversation-code-tests--apply session) :type 'buffer-read-only)))

(ert-deftest contexture-review-gets-a-window-that-shows-it ()
  (with-temp-buffer
    (dotimes (number 60) (insert (format "line %d\n" number)))
    (goto-char (point-min))
    (forward-line 30)
    (let* ((from (point-marker))
           (review (contexture-review--begin from (line-beginning-position 7))))
      (contexture-review--show review (apply #'concat (make-list 7 "new\n")) t)
      (save-window-excursion
        (delete-other-windows)
        (switch-to-buffer "*scratch*")
        (contexture-review--go-to from)
        (should (= (point) from))
        (should (eq (window-buffer) (marker-buffer from)))
        (should (= (window-body-height) 15)) ; 6 and 7 lines, the title, and the next one
        (should (= (window-start) from))
        (should (= (length (window-list)) 2))
        (let ((height (window-body-height)) (start (window-start)))
          (contexture-review-next)
          (should (equal (list (window-body-height) (window-start)) (list height start))))
        (contexture-review--end review)
        (setq review (contexture-review--begin from (line-beginning-position 20)))
        (contexture-review--show review (apply #'concat (make-list 20 "new\n")) t)
        (contexture-review-next)
        (should (<= 14 (window-body-height) (/ (* 2 (frame-height)) 3)))))))

(ert-deftest contexture-review-takes-the-place-of-a-mark ()
  "Behind the mark of a line, a terminal shows the ends of our lines as ^J."
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (contexture-mode)
    (contexture-add-defun)
    (llm-ert-wait-for (get-char-property (point) 'line-prefix))
    (let ((mark (get-char-property (point) 'line-prefix)))
      (should-not (equal mark ""))
      (contexture-rewrite "use cdr")
      (contexture-conversation-code-tests--proposed)
      (should (equal (get-char-property (point) 'line-prefix) ""))
      (contexture-review-reject)
      (should (equal (get-char-property (point) 'line-prefix) mark)))))

(ert-deftest contexture-review-is-compared-with-ediff ()
  (contexture-conversation-code-tests--with (list (list contexture-conversation-code-tests--cdr))
    (contexture-rewrite "use cdr")
    (contexture-conversation-code-tests--proposed)
    (let ((ediff-window-setup-function #'ediff-setup-windows-plain)
          (ediff-keep-variants t)
          (answered nil))
      ;; An event that is no list keeps Emacs from showing a dialog box.
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (_) (setq answered (not (listp last-nonmenu-event))))))
        (delete-other-windows)
        (set-window-buffer (selected-window) (current-buffer))
        (set-window-buffer (split-window) session)
        (contexture-review-ediff)
        (let ((control (cl-find-if (lambda (buffer)
                                     (string-match-p "\\`\\*Ediff Control"
                                                     (buffer-name buffer)))
                                   (buffer-list))))
          (should control)
          (with-current-buffer control
            (ediff-really-quit nil)))
        (llm-ert-wait-for answered))
      (should (get-buffer-window session))
      (should (get-buffer-window))
      (should (equal (buffer-string) contexture-conversation-code-tests--changed)))))

(defmacro contexture-conversation-code-tests--reviewing (&rest body)
  "Run BODY in a buffer with a proposed change of a part of its only line.
PLACES is how often a change was accepted there."
  (declare (indent 0) (debug t))
  `(with-temp-buffer
     (insert "(f (car x))\n")
     (let ((places 0))
       (add-hook 'contexture-review-accepted-functions (lambda (_) (cl-incf places)) nil t)
       (contexture-review--show (contexture-review--begin 4 11) "(cdr x)" t)
       (goto-char 4)
       ,@body)))

(ert-deftest contexture-review-says-what-was-passed-by-in-ediff ()
  "Ediff shows no difference before the user goes to it."
  (dolist (moves '(0 1 2 3))
    (with-temp-buffer
      (insert (mapconcat (lambda (it) (format "%d\n" it)) (number-sequence 1 300) ""))
      (let ((ediff-window-setup-function #'ediff-setup-windows-plain) (ediff-keep-variants t)
            (review (contexture-review--begin (point-min) (point-max)))
            (asked nil))
        (contexture-review--show
         review (string-replace "\n100\n" "\nx\n" (string-replace "\n200\n" "\ny\n" (buffer-string))) t)
        (goto-char (point-min))
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (text) (setq asked text) nil)))
          (contexture-review-ediff)
          (with-current-buffer (cl-find "*Ediff Control" (buffer-list)
                                        :key #'buffer-name :test #'string-prefix-p)
            (dotimes (move moves)
              (if (< move 2) (ediff-next-difference) (ediff-previous-difference)))
            (ediff-really-quit nil))
          (llm-ert-wait-for asked))
        (should (string-match-p (nth moves '("not visited 2 differences; accept" "not visited 1 difference;"
                                             "\\`Accept" "\\`Accept"))
                                asked))))))

(ert-deftest contexture-review-takes-what-was-accepted-in-ediff ()
  (contexture-conversation-code-tests--reviewing
    (let ((ediff-window-setup-function #'ediff-setup-windows-plain) (ediff-keep-variants t))
      (contexture-test-message "Applied all changes"
        (contexture-review-ediff)
        (with-current-buffer (cl-find "*Ediff Control" (buffer-list)
                                      :key #'buffer-name :test #'string-prefix-p)
          (ediff-next-difference)
          (ediff-copy-B-to-A nil)
          (ediff-really-quit nil)))
      (should (equal (buffer-string) "(f (cdr x))\n"))
      (should (= places 1)))))

(ert-deftest contexture-review-counts-as-accepted-after-a-comparison ()
  (pcase-dolist (`(,edit ,answer ,accepted ,message)
                 '(("" nil 0 "is unchanged") ("" t 1 "Accepted the changes")
                   ("my" nil 1 "Rejected the rest")))
    (contexture-conversation-code-tests--reviewing
      (let ((contexture-conversation-compare-function
             (lambda (_buffer _proposal done) (insert edit) (funcall done))))
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) answer)))
          (contexture-test-message message (contexture-review-ediff)))
        (should (= places accepted))))))

;;;; Changes with more lines than the window

(defmacro contexture-conversation-code-tests--long (old new &rest body)
  "Run BODY in a buffer with OLD lines for which NEW lines are proposed.
PART is the only part of the change."
  (declare (indent 2) (debug t))
  `(contexture-test-in-directory
    (lambda ()
      (contexture-test-visiting
          (contexture-test-file "long.txt"
                                (mapconcat (lambda (number) (format "old %d" number))
                                           (number-sequence 1 ,old) "\n"))
        (set-window-buffer nil (current-buffer))
        (let ((review (contexture-review--begin (point-min) (point-max))))
          (contexture-review--show
           review (mapconcat (lambda (number) (format "new %d\n" number))
                             (number-sequence 1 ,new) "")
           t)
          (let ((part (car (contexture-review--parts review))))
            (ignore part)
            ,@body))))))

(defun contexture-conversation-code-tests--scroll (command done)
  "Call COMMAND, which scrolls, after its hook, until DONE returns non-nil."
  (cl-loop repeat 100
           until (funcall done)
           do (run-hooks 'pre-command-hook)
           (ignore-error (beginning-of-buffer end-of-buffer)
             (call-interactively command))
           finally (should (funcall done))))

(ert-deftest contexture-review-scrolls-through-every-line ()
  (dolist (lines '((60 . 60) (60 . 120) (1 . 300) (30 . 10)))
    (contexture-conversation-code-tests--long (car lines) (cdr lines)
      (goto-char (point-min))
      (set-window-start nil (point-min))
      (let ((seen nil))
        (contexture-conversation-code-tests--scroll
         #'contexture-review-scroll-up
         (lambda ()
           (let ((shown (split-string (overlay-get part 'after-string) "\n" t)))
             (should (<= (length shown) (window-body-height)))
             (setq seen (append (mapcar #'substring-no-properties shown) seen))
             (not (contexture-review--unseen part)))))
        (dotimes (number (cdr lines))
          (should (member (format "new %d" (1+ number)) seen)))
        (contexture-conversation-code-tests--scroll
         #'contexture-review-scroll-down
         (lambda () (string-match-p "\\`\n?new 1\n" (overlay-get part 'after-string))))))))

(ert-deftest contexture-review-accepts-only-what-the-question-was-about ()
  (contexture-conversation-code-tests--long 60 60
    (goto-char (point-min))
    (set-window-start nil (point-min))
    (let ((before (buffer-string)))
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (_)
                   ;; Another change is proposed in the place of the first.
                   (setf (contexture-review--parts review) (list (copy-overlay part)))
                   t)))
        (dolist (command '(contexture-review-accept contexture-review-accept-part))
          (should-error (call-interactively command) :type 'user-error)))
      (should (equal before (buffer-string))))))

(ert-deftest contexture-review-accepts-unseen-lines-only-after-a-question ()
  (contexture-conversation-code-tests--long 60 60
    (goto-char (point-min))
    (set-window-start nil (point-min))
    (let ((before (buffer-string)) asked)
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (prompt) (setq asked prompt) nil)))
        (dolist (command '(contexture-review-accept contexture-review-accept-part))
          (setq asked nil)
          (should-error (call-interactively command) :type 'user-error)
          (should (string-search "not been shown" asked))
          ;; The first line that was not shown is at the top: lines that would go, too.
          (should (< 0 (contexture-review--unseen part) 60))
          (should (= (line-number-at-pos (window-start))
                     (1+ (contexture-review--unseen part))))))
      (should (equal before (buffer-string)))
      (contexture-conversation-code-tests--scroll #'contexture-review-scroll-up
                                          (lambda () (not (contexture-review--unseen part))))
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (&rest _) (ert-fail "asked"))))
        (call-interactively #'contexture-review-accept))
      (should (string-search "new 60" (buffer-string))))))

(ert-deftest contexture-conversation-code-question-takes-along-what-it-mentions ()
  (contexture-conversation-test-with '(("A1") ("A2"))
    (contexture-test-file "notes.txt" "a note")
    (contexture-test-file "decorated" "a wrapper")
    (setq default-directory llm-ert-directory)
    (contexture-test-visiting (contexture-test-file "a.py" "@decorated" "def f(): pass")
      (push-mark (point-min) t t)
      (goto-char (point-max))
      (let ((transient-mark-mode t))
        (save-current-buffer (contexture-send-region "Is it as in @notes.txt?"))))
    (contexture-conversation-test-wait)
    (should (string-search "a note" (contexture-conversation-test-last-shown)))
    (should-not (string-search "a wrapper" (contexture-conversation-test-last-shown)))
    (contexture-conversation-test-send "And now?")
    (should-not (string-search "a note" (contexture-conversation-test-last-shown)))
    (should-not (contexture-test-items contexture-context))))

(provide 'contexture-conversation-code-tests)
;;; contexture-conversation-code-tests.el ends here
