;;; contexture-trust-tests.el --- Tests of trust in projects  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Templates of a project that somebody else wrote, and the question
;; whether they count.

;;; Code:

(require 'contexture-conversation-test-helper)
(require 'contexture-doctor)

(defmacro contexture-trust-test-with (answers &rest body)
  "Run BODY in a conversation of a project with templates of its own.
ANSWERS, a form, are the keys that are pressed in turn."
  (declare (indent 1) (debug t))
  `(contexture-conversation-test-with '(("A") ("B"))
     (let* ((project (concat llm-ert-directory "theirs"))
            (folder (concat project "/.contexture/templates/"))
            (contexture-trust--asked nil)
            (keys ,answers))
       (make-directory folder t)
       (dolist (name '("ours" "goal-oriented" "explain"))
         (with-temp-file (concat folder name ".md")
           (insert "Theirs. {{ code }}\n")))
       (contexture-request 'open-session (list :name "theirs" :project project))
       (contexture-conversation-test-open "theirs")
       (llm-ert-wait-for contexture-conversation--templates)
       (cl-letf (((symbol-function 'read-multiple-choice)
                  (lambda (_prompt choices) (assq (pop keys) choices))))
         ,@body))))

(defun contexture-trust-test-projects ()
  "Return the names of the trusted projects."
  (mapcar (lambda (trusted) (plist-get trusted :project))
          (contexture-request 'trust-project)))

(defun contexture-trust-test-template ()
  "Return the template that manages this conversation, as the server has it."
  (contexture-test-settle)
  (let ((settings (contexture-request
                   'configure-session (list :session (contexture-conversation--session-id)))))
    (and (plist-get settings :manage) (plist-get settings :template))))

(ert-deftest contexture-trust-is-asked-for-once-and-kept ()
  (contexture-trust-test-with (list ?s ?y)
    (should (equal (sort (mapcar #'car contexture-conversation--untrusted) #'string<)
                   '("explain" "goal-oriented" "ours")))
    (should-not (member "ours" contexture-conversation--templates))
    (should (member "ours" (contexture-conversation--template-names)))
    (contexture-conversation-switch-notes "ours")
    (should (string-search "Theirs. {{ code }}"
                           (with-current-buffer contexture-trust-buffer (buffer-string))))
    (llm-ert-wait-for (equal (contexture-trust-test-template) "ours"))
    (should (equal (contexture-trust-test-projects) (list (file-truename project))))
    (llm-ert-wait-for (member "ours" contexture-conversation--templates))
    (should-not contexture-conversation--untrusted)
    (contexture-test-message "no longer trusted"
      (contexture-distrust-project project)
      (llm-ert-wait-for contexture-conversation--untrusted))
    (should-not (contexture-trust-test-projects))
    (should-not keys)))

(ert-deftest contexture-trust-says-what-it-does-not-show ()
  (contexture-test-in-directory
   (lambda ()
     (dolist (left '(0 7))
       (contexture-test-file "long" (make-string (+ contexture-trust--longest left -1) ?x))
       (contexture-trust--show (list (expand-file-name "long")))
       (should (eq (/= left 0)
                   (not (null (string-search
                               "bytes are not shown"
                               (with-current-buffer contexture-trust-buffer (buffer-string)))))))))))

(ert-deftest contexture-trust-that-is-refused-leaves-the-users-templates ()
  (contexture-trust-test-with (list ?n)
    (contexture-conversation-switch-notes "goal-oriented")
    (llm-ert-wait-for (equal (contexture-trust-test-template) "goal-oriented"))
    (contexture-conversation-switch-notes "ours")
    (llm-ert-wait-for (string-search "is not trusted; look at its"
                                            (contexture-conversation-test-shown)))
    (llm-ert-wait-for (equal (contexture-trust-test-template) "goal-oriented"))
    (should-not keys)
    (should-not (contexture-trust-test-projects))))

(ert-deftest contexture-trust-is-not-asked-for-without-need ()
  (contexture-trust-test-with nil
    (contexture-conversation-switch-notes "freeform-chat")
    (llm-ert-wait-for (equal (contexture-trust-test-template) "freeform-chat"))))

(ert-deftest contexture-trust-is-asked-for-by-questions-about-code ()
  (contexture-trust-test-with (list ?y)
    (let (text)
      (cl-letf (((symbol-function 'contexture-conversation-code--clean)
                 (lambda (_) (current-buffer)))
                ((symbol-function 'contexture-conversation-code--take)
                 (lambda (&rest _) (cons "(+ 1 2)" (contexture-conversation--make-origin))))
                ((symbol-function 'contexture-conversation-code--submit)
                 (lambda (said _) (setq text said))))
        (contexture-conversation-code--ask "explain" nil nil)
        (llm-ert-wait-for text))
      (should (equal text "Theirs. (+ 1 2)")))))

(ert-deftest contexture-trust-is-told-by-the-doctor ()
  (contexture-trust-test-with nil
    (let (found)
      (contexture-doctor--check-trust (lambda (findings) (setq found findings)))
      (llm-ert-wait-for found)
      (should (string-search "No project is trusted" (nth 1 (car found))))
      (contexture-test-message "its texts explain, goal-oriented, ours are used"
        (contexture-trust-project project))
      (setq found nil)
      (contexture-doctor--check-trust (lambda (findings) (setq found findings)))
      (llm-ert-wait-for found)
      (should (string-match-p "theirs is trusted; its texts for models are used\\'"
                              (nth 1 (car found))))
      (funcall (cdar (nthcdr 3 (car found))))
      (llm-ert-wait-for (null (contexture-trust-test-projects))))))

(provide 'contexture-trust-tests)
;;; contexture-trust-tests.el ends here
